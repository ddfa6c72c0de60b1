// A blocking HTTP/1.1 client that can misbehave: sends any bytes, stops reading, resets. For tests.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/base/json.h"

namespace octet::testing {

struct HttpReply {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool complete = false;  // ended as its framing says

  std::string header(std::string_view name) const;
  Json json() const;  // discarded where it is none
};

class HttpClient {
 public:
  // Time-outs of all calls: a server that does not answer fails the test instead of hanging it.
  explicit HttpClient(int port, const std::string& host = "127.0.0.1", int receive_buffer = 0);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return fd_ >= 0; }
  bool send(std::string_view bytes);  // false: the server has closed
  bool post(std::string_view path, std::string_view body, std::string_view more_headers = {});
  bool get(std::string_view path, std::string_view method = "GET");
  // Headers of the next reply; the body is left unread.
  HttpReply read_head();
  HttpReply read();
  // Data of the next event of a stream whose head was read; nothing at the end of the body.
  std::optional<std::string> next_event();
  // At most `limit` raw bytes; empty at the end or after the time-out.
  std::string read_raw(std::size_t limit);
  bool at_end();  // the server has closed

  void close();
  void reset();  // closes with RST

 private:
  bool fill();
  bool read_line(std::string& line);
  bool read_chunk(std::string& into);

  int fd_ = -1;
  std::string buffer_;  // received, not used
  std::string events_;  // decoded body of a stream
  bool stream_ended_ = false;
};

// One request on a connection of its own.
HttpReply http_post(int port, std::string_view path, std::string_view body);
HttpReply http_get(int port, std::string_view path);

}  // namespace octet::testing
