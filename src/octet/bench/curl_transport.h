// Requests over HTTP/1.1: libcurl's transfers in one thread, woken by epoll.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/bench/transport.h"

namespace octet::bench {

struct HttpTarget {
  std::string url;                   // where to post to
  std::vector<std::string> headers;  // "Name: value", beside the content type
  bool verify = true;                // the certificate of an https server
  std::int64_t timeout_ms = 0;       // of a whole answer; 0: none
};

// An error names the URL.
Result<std::unique_ptr<Transport>> open_http(const HttpTarget& target);

struct HttpReply {
  int status = 0;
  std::string body;
};

// One GET, for what a run asks before it begins; any status is a reply. `stopped` is asked a few times a second: true
// ends it with kCancelled.
Result<HttpReply> http_get(const HttpTarget& target, std::int64_t timeout_ms, const std::function<bool()>& stopped);

}  // namespace octet::bench
