#include "apps/octet/pull_signals.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace octet::hub {

std::atomic<int> stop_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

SignalGuard::SignalGuard() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    if (signal != SIGCHLD) stop_signal = signal;
  };
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &old_[i]);
}

SignalGuard::~SignalGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_[i], nullptr);
}

sigset_t SignalGuard::signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : kSignals) sigaddset(&set, signal);
  return set;
}

Result<std::optional<FileLock>> FileLock::try_take(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  FileLock lock(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
  if (lock.descriptor_ < 0) return system_failure(path);
  while (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) {
      return fail(ErrorCode::kUnsupported,
                  "{}: this file system has no locks, without which programs that share a "
                  "cache would spoil each other's files: use a cache on another one",
                  path.string());
    }
    if (errno != EINTR) return system_failure(path);
  }
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::unexpected<Error> system_failure(const std::filesystem::path& path) {
  const int code = errno;
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  return fail(full ? ErrorCode::kExhausted : ErrorCode::kIo, "{}: {}", path.string(), std::strerror(code));
}

}  // namespace octet::hub
