// HTTP messages and limits, as the routes see them.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::server {

struct HttpRequest {
  std::string method;  // as sent: "POST"
  std::string path;    // percent-decoded, without the query
  std::string query;   // as sent, without the '?'
  bool http11 = true;
  bool keep_alive = true;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;

  // The first header of that name (lower case), or nothing.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type;  // empty: no such header
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// "Not Found" for 404.
std::string_view reason_phrase(int status);

struct HttpLimits {
  std::size_t header_bytes = std::size_t{64} << 10;  // request line and headers
  std::size_t header_count = 256;
  std::size_t body_bytes = std::size_t{64} << 20;
  std::size_t arriving_bytes = std::size_t{512} << 20;  // of all bodies that are being received
  std::size_t pipelined_bytes = std::size_t{1} << 20;   // sent ahead while a request is answered; beyond, the end
  std::size_t backlog_bytes = std::size_t{1} << 20;     // of one stream whose client does not read
  std::size_t connections = 16384;
  std::chrono::milliseconds header_timeout{10'000};       // from the first byte of a request to the end of its headers
  std::chrono::milliseconds body_timeout{30'000};         // without a new byte of the body
  std::chrono::milliseconds whole_body_timeout{300'000};  // from the end of the headers to the end of the body
  std::chrono::milliseconds idle_timeout{75'000};         // between requests
  std::chrono::milliseconds write_timeout{30'000};        // without a byte taken by the client
  std::chrono::milliseconds linger_timeout{2'000};        // for what a client still sends after an error
};

}  // namespace octet::server
