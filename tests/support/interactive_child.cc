#include "tests/support/interactive_child.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/child_process.h"

namespace octet::testing {
namespace {

constexpr double kPatienceSeconds = 60, kStepSeconds = 0.002;

std::string slurp(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

[[noreturn]] void become(const ChildSetup& setup) {
  for (const auto& [name, value] : setup.environment) {
    value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : setup.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

void redirect(const std::filesystem::path& path, int descriptor) {
  ::dup2(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600), descriptor);
}

}  // namespace

bool wait_a_little(double& waited) {
  std::this_thread::sleep_for(std::chrono::duration<double>(kStepSeconds));
  waited += kStepSeconds;
  return waited < kPatienceSeconds * time_scale();
}

InteractiveChild::InteractiveChild(const ChildSetup& setup) : terminal_(setup.terminal) {
  if (terminal_) {
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    child_ = ::forkpty(&input_, nullptr, nullptr, &size);
    if (child_ == 0) become(setup);
    ::fcntl(input_, F_SETFD, FD_CLOEXEC);
  } else {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
    input_ = ends[1];
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[0], STDIN_FILENO);
      redirect(folder_.path() / "out", STDOUT_FILENO);
      redirect(folder_.path() / "err", STDERR_FILENO);
      become(setup);
    }
    ::close(ends[0]);
  }
  if (child_ < 0) throw std::runtime_error("fork failed");
}

InteractiveChild::~InteractiveChild() {
  if (runs()) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  end_input();
}

void InteractiveChild::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t put = ::write(input_, text.data(), text.size());
    if (put <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

void InteractiveChild::end_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void InteractiveChild::signal(int number) const { ::kill(child_, number); }

bool InteractiveChild::runs() {
  int status = 0;
  if (!status_ && ::waitpid(child_, &status, WNOHANG) == child_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return !status_;
}

// A terminal that nobody reads from would stop the child.
void InteractiveChild::drain() {
  for (pollfd watched{input_, POLLIN, 0}; ::poll(&watched, 1, 0) > 0 && (watched.revents & POLLIN) != 0;) {
    char buffer[4096];
    const ssize_t got = ::read(input_, buffer, sizeof buffer);
    if (got <= 0) return;
    shown_.append(buffer, static_cast<std::size_t>(got));
  }
}

bool InteractiveChild::says(const std::string& text, int times) {
  bool found = false;
  comes_true([&] {
    const bool last = !runs();  // asked first: what it said before it ended counts
    found = count_of(output() + errors(), text) >= times;
    return found || last;
  });
  return found;
}

std::optional<int> InteractiveChild::wait() {
  comes_true([&] {
    if (terminal_) drain();
    return !runs();
  });
  return status_;
}

bool InteractiveChild::line_mode() const {
  termios modes{};
  return ::tcgetattr(input_, &modes) == 0 && (modes.c_lflag & ICANON) != 0;
}

void InteractiveChild::set_line_mode() const {
  termios modes{};
  ::tcgetattr(input_, &modes);
  modes.c_lflag |= ICANON | ECHO;
  ::tcsetattr(input_, TCSANOW, &modes);
}

std::string InteractiveChild::output() {
  if (!terminal_) return slurp(folder_.path() / "out");
  drain();
  return shown_;
}

std::string InteractiveChild::errors() const { return terminal_ ? std::string() : slurp(folder_.path() / "err"); }

ChildResult run_to_end(const ChildSetup& setup, std::string_view input) {
  InteractiveChild child(setup);
  child.write(input);
  child.end_input();
  const std::optional<int> status = child.wait();
  return {status, child.output(), child.errors()};
}

}  // namespace octet::testing
