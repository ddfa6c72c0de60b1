#include "tests/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace octet::testing {
namespace {

using Clock = std::chrono::steady_clock;

pid_t start(const std::vector<std::string>& command, int& output) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output = ends[0];
  return child;
}

// Reads until the end of the output, the text or the deadline; true where the child must be ended.
bool follow(int output, Clock::time_point deadline, const std::string& until, ChildOutcome& outcome) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      outcome.timed_out = true;
      return true;
    }
    pollfd watched{output, POLLIN, 0};
    if (::poll(&watched, 1, static_cast<int>(left)) <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(output, buffer, sizeof buffer);
    if (got <= 0) return false;
    outcome.output.append(buffer, static_cast<std::size_t>(got));
    if (!until.empty() && outcome.output.find(until) != std::string::npos) {
      outcome.ready = true;
      return true;
    }
  }
}

// Waits until the child has ended; kills it at the deadline.
int reap(pid_t child, Clock::time_point deadline, ChildOutcome& outcome) {
  rusage usage{};
  int status = 0;
  while (::wait4(child, &status, WNOHANG, &usage) == 0) {
    if (Clock::now() >= deadline) {
      outcome.timed_out = true;
      ::kill(child, SIGKILL);
      ::wait4(child, &status, 0, &usage);
      break;
    }
    ::usleep(500);
  }
  outcome.peak_kib = usage.ru_maxrss;
  return status;
}

}  // namespace

ChildOutcome run_child(const std::vector<std::string>& command, double limit_seconds, const std::string& until) {
  ChildOutcome outcome;
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_seconds));
  const auto deadline = Clock::now() + limit;
  int output = -1;
  const pid_t child = start(command, output);
  if (follow(output, deadline, until, outcome)) ::kill(child, outcome.timed_out ? SIGKILL : SIGTERM);
  const int status = reap(child, deadline + limit, outcome);
  ::close(output);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

double time_scale() {
  const char* scale = std::getenv("OCTET_TEST_TIME_SCALE");
  return scale == nullptr ? 1.0 : std::max(std::strtod(scale, nullptr), 1.0);
}

}  // namespace octet::testing
