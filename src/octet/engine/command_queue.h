// What other threads want of the engine's thread: any thread pushes, one takes all; nobody ever waits for a lock.
#pragma once
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace octet::engine {

// Node has a member `Node* next`.
template <typename Node>
class CommandQueue {
 public:
  CommandQueue() = default;
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;
  ~CommandQueue() {
    take_all([](std::unique_ptr<Node>) {});
  }

  void push(std::unique_ptr<Node> node) {
    Node* added = node.release();
    push_chain(added, added);
  }

  // All of them at once: whoever takes gets either none or all.
  void push_all(std::vector<std::unique_ptr<Node>> nodes) {
    if (nodes.empty()) return;
    Node* const oldest = nodes.front().get();
    Node* newest = nullptr;
    for (std::unique_ptr<Node>& node : nodes) {
      node->next = newest;
      newest = node.release();
    }
    push_chain(newest, oldest);
  }

  // Hands over every node, oldest first.
  template <typename Take>
  void take_all(Take take) {
    Node* newest = head_.exchange(nullptr, std::memory_order_acquire);
    Node* oldest = nullptr;
    while (newest != nullptr) oldest = std::exchange(newest, std::exchange(newest->next, oldest));
    while (oldest != nullptr) {
      std::unique_ptr<Node> node(oldest);
      oldest = node->next;
      take(std::move(node));
    }
  }

 private:
  // Nodes that are linked from `newest` to `oldest`.
  void push_chain(Node* newest, Node* oldest) {
    oldest->next = head_.load(std::memory_order_relaxed);
    while (!head_.compare_exchange_weak(oldest->next, newest, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  std::atomic<Node*> head_{nullptr};  // newest first
};

}  // namespace octet::engine
