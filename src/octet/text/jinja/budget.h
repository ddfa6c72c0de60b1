// Counts what a rendering uses and stops it at its limits.
#pragma once
#include <cstddef>
#include <cstdint>

#include "octet/base/error.h"
#include "octet/text/render_limits.h"

namespace octet::text::jinja {

class Budget {
 public:
  explicit Budget(const RenderLimits& limits) : limits_(limits) {}

  // Work done. Error (as of every function here): the limit is passed.
  Result<> step(std::size_t count = 1) {
    steps_ += static_cast<std::int64_t>(count);
    if (steps_ > limits_.max_steps) [[unlikely]]
      return too_much("steps", static_cast<std::size_t>(limits_.max_steps));
    return {};
  }
  // A string may be this long.
  Result<> fits(std::size_t bytes) {
    if (bytes > limits_.max_output_bytes) [[unlikely]]
      return too_much("bytes in one text", limits_.max_output_bytes);
    return {};
  }
  // A string of this many bytes is about to be made or read through.
  Result<> text(std::size_t bytes) {
    OCTET_TRY_VOID(fits(bytes));
    return step(bytes / 32);
  }
  Result<> allocate(std::size_t bytes) {
    memory_ += bytes;
    if (memory_ > limits_.max_memory_bytes && !exempt_) [[unlikely]] {
      return too_much("bytes of memory", limits_.max_memory_bytes);
    }
    return {};
  }
  void release(std::size_t bytes) { memory_ -= bytes; }
  Result<> enter() {
    if (++depth_ > limits_.max_depth) [[unlikely]] {
      too_deep_ = true;
      return too_much("levels of depth", static_cast<std::size_t>(limits_.max_depth));
    }
    return {};
  }
  bool too_deep() const { return too_deep_; }  // enter() failed
  void leave() { --depth_; }
  // While true, memory is counted but not limited: for the input, which is there already.
  void set_exempt(bool exempt) { exempt_ = exempt; }
  // Forgets what was counted so far.
  void restart() { memory_ = 0, steps_ = 0; }

 private:
  static std::unexpected<Error> too_much(const char* what, std::size_t limit) {
    return fail(ErrorCode::kExhausted, "rendering takes more than {} {}", limit, what);
  }

  RenderLimits limits_;
  std::int64_t steps_ = 0;
  std::size_t memory_ = 0;
  int depth_ = 0;
  bool too_deep_ = false;
  bool exempt_ = false;
};

// enter() and leave() as a scope.
class DepthGuard {
 public:
  explicit DepthGuard(Budget& budget) : budget_(budget), entered_(budget.enter()) {}
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  ~DepthGuard() { budget_.leave(); }
  const Result<>& entered() const { return entered_; }

 private:
  Budget& budget_;
  Result<> entered_;
};

}  // namespace octet::text::jinja
