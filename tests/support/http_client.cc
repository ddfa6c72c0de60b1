#include "tests/support/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

namespace octet::testing {
namespace {

constexpr int kTimeoutSeconds = 60;

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

std::string HttpReply::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

Json HttpReply::json() const { return Json::parse(body, nullptr, false); }

HttpClient::HttpClient(int port, const std::string& host, int receive_buffer) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
  fd_ = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{kTimeoutSeconds, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  if (::connect(fd_, found->ai_addr, found->ai_addrlen) != 0) close();
  ::freeaddrinfo(found);
}

HttpClient::~HttpClient() { close(); }

void HttpClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void HttpClient::reset() {
  const linger now{1, 0};
  if (fd_ >= 0) ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

bool HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool HttpClient::post(std::string_view path, std::string_view body, std::string_view more_headers) {
  return send(
      fmt::format("POST {} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
                  "{}\r\n{}",
                  path, body.size(), more_headers, body));
}

bool HttpClient::get(std::string_view path, std::string_view method) {
  return send(fmt::format("{} {} HTTP/1.1\r\nHost: test\r\n\r\n", method, path));
}

bool HttpClient::fill() {
  char bytes[16384];
  const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

bool HttpClient::read_line(std::string& line) {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!fill()) return false;
  }
  line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return true;
}

HttpReply HttpClient::read_head() {
  HttpReply reply;
  std::string line;
  if (!read_line(line) || line.size() < 12) return reply;
  reply.status = std::atoi(line.c_str() + 9);
  while (read_line(line) && !line.empty()) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) return reply;
    reply.headers.emplace_back(lower(line.substr(0, colon)), line.substr(std::min(line.size(), colon + 2)));
  }
  stream_ended_ = false;
  events_.clear();
  return reply;
}

bool HttpClient::read_chunk(std::string& into) {
  std::string line;
  if (!read_line(line)) return false;
  const std::size_t size = std::strtoull(line.c_str(), nullptr, 16);
  while (buffer_.size() < size + 2) {
    if (!fill()) return false;
  }
  into.append(buffer_, 0, size);
  buffer_.erase(0, size + 2);
  if (size == 0) stream_ended_ = true;
  return true;
}

HttpReply HttpClient::read() {
  HttpReply reply = read_head();
  if (reply.status == 0 || reply.status == 100) return reply;
  if (reply.header("transfer-encoding") == "chunked") {
    while (!stream_ended_) {
      if (!read_chunk(reply.body)) return reply;
    }
    reply.complete = true;
    return reply;
  }
  const std::string length = reply.header("content-length");
  if (length.empty()) {
    while (fill()) {
    }
    reply.body = std::exchange(buffer_, {});
    reply.complete = true;
    return reply;
  }
  const std::size_t size = std::strtoull(length.c_str(), nullptr, 10);
  while (buffer_.size() < size) {
    if (!fill()) break;
  }
  reply.complete = buffer_.size() >= size;
  reply.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return reply;
}

std::optional<std::string> HttpClient::next_event() {
  std::size_t end = 0;
  while ((end = events_.find("\n\n")) == std::string::npos) {
    if (stream_ended_ || !read_chunk(events_)) return std::nullopt;
  }
  std::string event = events_.substr(0, end);
  events_.erase(0, end + 2);
  constexpr std::string_view kData = "data: ";
  return event.starts_with(kData) ? event.substr(kData.size()) : event;
}

std::string HttpClient::read_raw(std::size_t limit) {
  if (buffer_.empty()) fill();
  std::string out = buffer_.substr(0, limit);
  buffer_.erase(0, out.size());
  return out;
}

bool HttpClient::at_end() { return buffer_.empty() && !fill(); }

HttpReply http_post(int port, std::string_view path, std::string_view body) {
  HttpClient client(port);
  client.post(path, body);
  return client.read();
}

HttpReply http_get(int port, std::string_view path) {
  HttpClient client(port);
  client.get(path);
  return client.read();
}

}  // namespace octet::testing
