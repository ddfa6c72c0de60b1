// A load generator in one thread: many streams at once, counted by their events.
#pragma once
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "octet/base/check.h"

namespace octet::bench {

// Every stream posts the same body to /v1/completions of 127.0.0.1 and reads what comes.
class StreamLoad {
 public:
  StreamLoad(int port, int streams, const std::string& body) : begun_(static_cast<std::size_t>(streams)) {
    poll_ = ::epoll_create1(EPOLL_CLOEXEC);
    const std::string request =
        fmt::format("POST /v1/completions HTTP/1.1\r\nHost: b\r\nContent-Length: {}\r\n\r\n{}", body.size(), body);
    for (int i = 0; i < streams; ++i) open_stream(port, request, i);
    reader_ = std::thread(&StreamLoad::read, this);
  }
  ~StreamLoad() {
    stop_ = true;
    reader_.join();
    for (const int fd : sockets_) ::close(fd);
    ::close(poll_);
  }
  StreamLoad(const StreamLoad&) = delete;
  StreamLoad& operator=(const StreamLoad&) = delete;

  std::uint64_t events() const { return events_; }

  // False where some stream has no event after a minute.
  bool wait_until_all_stream() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (streaming_ < static_cast<int>(sockets_.size())) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  void open_stream(int port, const std::string& request, int index) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    OCTET_CHECK(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    OCTET_CHECK(::send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size()));
    sockets_.push_back(fd);
    epoll_event interest{};
    interest.events = EPOLLIN;
    interest.data.u32 = static_cast<std::uint32_t>(index);
    ::epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &interest);
  }

  // An event ends with an empty line; "data: " begins it, and no text that is streamed here holds that.
  static std::uint64_t count_events(std::string_view bytes) {
    std::uint64_t count = 0;
    for (std::size_t at = 0; (at = bytes.find("data: {", at)) != std::string_view::npos; at += 7) ++count;
    return count;
  }

  void read() {
    std::vector<char> buffer(std::size_t{256} << 10);
    epoll_event ready[64];
    while (!stop_) {
      const int count = ::epoll_wait(poll_, ready, 64, 50);
      for (int i = 0; i < count; ++i) {
        const std::uint32_t index = ready[i].data.u32;
        const ssize_t got = ::recv(sockets_[index], buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got == 0) ::epoll_ctl(poll_, EPOLL_CTL_DEL, sockets_[index], nullptr);
        if (got <= 0) continue;
        const std::uint64_t events = count_events({buffer.data(), static_cast<std::size_t>(got)});
        events_ += events;
        if (events > 0 && !begun_[index]) {
          begun_[index] = true;
          ++streaming_;
        }
      }
    }
  }

  int poll_ = -1;
  std::vector<int> sockets_;
  std::vector<bool> begun_;
  std::atomic<std::uint64_t> events_ = 0;
  std::atomic<int> streaming_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread reader_;
};

}  // namespace octet::bench
