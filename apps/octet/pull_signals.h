// Interrupts and locks of commands that fetch.
#pragma once
#include <signal.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <optional>
#include <utility>

#include "octet/base/error.h"

namespace octet::hub {

// The signal that asked to stop; 0: none. Set by SignalGuard's handler.
extern std::atomic<int> stop_signal;

// Between construction and destruction SIGINT and SIGTERM set stop_signal, so that what was begun is brought to an
// orderly end, and SIGCHLD ends a wait.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  static sigset_t signals();

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGCHLD};
  std::array<struct sigaction, kSignals.size()> old_;
};

// An exclusive lock of a file until destruction; the kernel frees it when the process dies.
class FileLock {
 public:
  // Nothing where another process or thread holds it. Makes the folders on the way.
  static Result<std::optional<FileLock>> try_take(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// What errno says about this path; kExhausted where there is no room.
std::unexpected<Error> system_failure(const std::filesystem::path& path);

}  // namespace octet::hub
