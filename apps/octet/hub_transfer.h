// HTTP to a hub, over libcurl: one connection with its retries, redirects, proxies and certificates.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "apps/octet/hub_settings.h"
#include "octet/base/error.h"

namespace octet::hub {

// What came back where the connection itself held. Names of the hub's error headers: X-Error-Code, X-Error-Message.
struct Reply {
  long status = 0;
  std::string body;  // at most the limit asked for; of a range only where the status is an error
  std::string error_code, error_message;
  bool redirected = false;  // it is the answer of another address than the one asked
};

// Of one thread. A token goes to the hub itself and not to where it redirects.
class Connection {
 public:
  // `stopped` ends transfers and waits within a quarter of a second, with an error of kind kCancelled.
  Connection(const Settings& settings, std::function<bool()> stopped);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The whole of a small answer, whatever its status. Tries again where trying again can help (no connection, a cut
  // one, 408, 425, 429, 5xx), with waits that double and are at least what Retry-After asks.
  Result<Reply> get(const std::string& url, std::size_t max_bytes);

  // The bytes [begin, end) of a file of `total` bytes, handed to `sink` in order. Goes on where a cut connection
  // stopped. A reply with an error status came before any byte, or the file's address lapsed and came back so.
  using Sink = std::function<Result<>(std::span<const std::byte>)>;
  Result<Reply> get_range(const std::string& url, std::int64_t begin, std::int64_t end, std::int64_t total,
                          const Sink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Text as it may stand in a path of an address; `slashes`: / stays.
std::string url_encoded(std::string_view text, bool slashes);

}  // namespace octet::hub
