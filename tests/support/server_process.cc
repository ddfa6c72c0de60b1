#include "tests/support/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "octet/base/check.h"

namespace octet::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLimit{60};

}  // namespace

template <typename Body>
void ServerProcess::start(const Body& body) {
  int ends[2];
  OCTET_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  child_ = ::fork();
  OCTET_CHECK(child_ >= 0);
  if (child_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::_exit(body());
  }
  ::close(ends[1]);
  pipe_ = ends[0];
}

ServerProcess::ServerProcess(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {OCTET_PROGRAM, "serve"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> raw;
  for (std::string& argument : command) raw.push_back(argument.data());
  raw.push_back(nullptr);
  start([&raw] {
    ::execv(raw[0], raw.data());
    return 127;
  });
}

ServerProcess::ServerProcess(const std::function<int()>& body) { start(body); }

ServerProcess::~ServerProcess() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(pipe_);
}

bool ServerProcess::wait_for(const std::string& text) {
  const auto deadline = Clock::now() + kLimit;
  while (output_.find(text) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd watched{pipe_, POLLIN, 0};
    if (left <= 0 || ::poll(&watched, 1, static_cast<int>(left)) <= 0) return false;
    char buffer[4096];
    const ssize_t got = ::read(pipe_, buffer, sizeof buffer);
    if (got <= 0) return false;
    output_.append(buffer, static_cast<std::size_t>(got));
  }
  return true;
}

int ServerProcess::port() {
  constexpr const char* kBefore = "listening on http://";
  if (!wait_for(kBefore)) return 0;
  const std::size_t start = output_.find(kBefore);
  const std::size_t end = output_.find('\n', start);
  if (end == std::string::npos && !wait_for("\n")) return 0;
  const std::string line = output_.substr(start, output_.find('\n', start) - start);
  return std::atoi(line.c_str() + line.rfind(':') + 1);
}

void ServerProcess::signal(int number) { ::kill(child_, number); }

int ServerProcess::wait() {
  const auto deadline = Clock::now() + kLimit;
  int status = 0;
  while (::waitpid(child_, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) return -1000;
    pollfd watched{pipe_, POLLIN, 0};
    if (::poll(&watched, 1, 5) > 0) {
      char buffer[4096];
      const ssize_t got = ::read(pipe_, buffer, sizeof buffer);
      if (got > 0) output_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace octet::testing
