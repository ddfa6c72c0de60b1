#include "tests/support/stub_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "octet/base/check.h"

namespace octet::testing {
namespace {

// Head and body of a request; empty where the peer left.
std::string read_request(int peer) {
  std::string text;
  char bytes[65536];
  for (;;) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t at = text.find("Content-Length: ");
      const std::size_t length = at < end ? std::stoul(text.substr(at + 16)) : 0;
      if (text.size() >= end + 4 + length) return text;
    }
    const ssize_t got = ::recv(peer, bytes, sizeof bytes, 0);
    if (got <= 0) return "";
    text.append(bytes, static_cast<std::size_t>(got));
  }
}

void send_all(int peer, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

StubServer::StubServer(Answer answer) : answer_(std::move(answer)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  OCTET_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  OCTET_CHECK(::listen(listener_, 64) == 0);
  OCTET_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

StubServer::~StubServer() {
  stopped_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

std::string StubServer::url() const { return fmt::format("http://127.0.0.1:{}", port_); }

void StubServer::serve() {
  while (!stopped_) {
    const int peer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) continue;
    const std::string request = read_request(peer);
    const std::size_t end = request.find(" HTTP/1.1");
    if (end != std::string::npos) send_all(peer, answer_(request.substr(0, end)));
    ::close(peer);
  }
}

}  // namespace octet::testing
