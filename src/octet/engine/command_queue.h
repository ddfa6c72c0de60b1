// What other threads want of the engine's thread: any thread pushes, one takes all; nobody ever waits for a lock.
#pragma once
#include <atomic>
#include <memory>
#include <utility>

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
    added->next = head_.load(std::memory_order_relaxed);
    while (!head_.compare_exchange_weak(added->next, added, std::memory_order_release, std::memory_order_relaxed)) {
    }
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
  std::atomic<Node*> head_{nullptr};  // newest first
};

}  // namespace octet::engine
