// A server whose answers are a script's bytes, one connection after another; each is closed behind its answer.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace octet::testing {

class StubServer {
 public:
  // target: "POST /v1/completions". What it returns is sent as it is; empty: the connection is closed without a word.
  using Answer = std::function<std::string(const std::string& target)>;
  explicit StubServer(Answer answer);
  ~StubServer();
  StubServer(const StubServer&) = delete;
  StubServer& operator=(const StubServer&) = delete;

  int port() const { return port_; }
  std::string url() const;

 private:
  void serve();

  Answer answer_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace octet::testing
