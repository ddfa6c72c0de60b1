// How requests leave and answers come in: over HTTP, or from a script in a test.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace octet::bench {

// What becomes of a request. Times are the transport's clock's. Every request that was sent ends in exactly one of the
// last two, unless it is cancelled.
class TransportEvents {
 public:
  virtual ~TransportEvents() = default;
  virtual void on_status(std::uint64_t id, int status) = 0;
  virtual void on_bytes(std::uint64_t id, std::int64_t ns, std::string_view bytes) = 0;
  virtual void on_end(std::uint64_t id, std::int64_t ns) = 0;
  // reason: one line that begins with the kind of failure, as in "connection refused".
  virtual void on_failure(std::uint64_t id, std::int64_t ns, const std::string& reason) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Posts a body; id is the caller's.
  virtual void send(std::uint64_t id, std::string body) = 0;
  // Gives out what has come, and waits for it until the clock says `until_ns` at most; returns early at any time.
  virtual void wait(std::int64_t until_ns, TransportEvents& events) = 0;
  // Drops all that is on its way; nothing more is heard of it.
  virtual void cancel_all() = 0;
  virtual std::int64_t now_ns() const = 0;  // monotonic
  virtual std::int64_t cpu_ns() const = 0;  // processor time of the thread that waits
  // How long a round of events took that came together, at the 99th percentile: what a time stamp may be late by.
  virtual std::int64_t round_p99_ns() const = 0;
};

}  // namespace octet::bench
