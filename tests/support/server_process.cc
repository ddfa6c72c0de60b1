#include "tests/support/server_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/support/child_process.h"
#include "tests/support/http_client.h"

namespace octet::testing {
namespace {

constexpr double kPatienceSeconds = 60;

bool poll_until(const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  const auto patience = std::chrono::duration<double>(kPatienceSeconds * time_scale());
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
  while (!condition()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& arguments, const Surroundings& surroundings)
    : output_(folder_.path() / "output") {
  std::vector<char*> command = {const_cast<char*>(OCTET_PROGRAM), const_cast<char*>("serve")};
  for (const std::string& argument : arguments) command.push_back(const_cast<char*>(argument.c_str()));
  command.push_back(nullptr);
  const int output = ::open(output_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (output < 0) throw std::runtime_error("cannot write " + output_.string());
  child_ = ::fork();
  if (child_ == 0) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    for (const auto& [name, value] : surroundings.environment) ::setenv(name.c_str(), value.c_str(), 1);
    const char* folder = surroundings.folder.c_str();
    if (!surroundings.folder.empty() && ::chdir(folder) != 0) ::_exit(126);
    if (surroundings.folder_is_gone && ::rmdir(folder) != 0) ::_exit(126);
    ::execv(command[0], command.data());
    ::_exit(127);
  }
  ::close(output);
  if (child_ < 0) throw std::runtime_error("fork failed");
}

ServerProcess::~ServerProcess() {
  if (ended()) return;
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

bool ServerProcess::ended() {
  int status = 0;
  if (!status_ && ::waitpid(child_, &status, WNOHANG) == child_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return status_.has_value();
}

bool ServerProcess::says(const std::string& text) {
  bool found = false;
  poll_until([&] {
    const bool last = ended();  // asked first: what it said before it ended counts
    found = output().find(text) != std::string::npos;
    return found || last;
  });
  return found;
}

bool ServerProcess::served() const { return output().find(kServes) != std::string::npos; }

int ServerProcess::port() const {
  const std::string text = output();
  const std::size_t url = text.find("://");  // http or https
  if (url == std::string::npos) return 0;
  const std::string_view address = std::string_view(text).substr(url, text.find_first_of(" ,\n", url) - url);
  return std::atoi(address.substr(address.rfind(':') + 1).data());
}

std::optional<int> ServerProcess::wait() {
  poll_until([&] { return ended(); });
  return status_;
}

void ServerProcess::signal(int number) const { ::kill(child_, number); }

std::string ServerProcess::output() const {
  std::stringstream text;
  text << std::ifstream(output_).rdbuf();
  return text.str();
}

std::int64_t ServerProcess::resident_bytes() const {
  std::ifstream status("/proc/" + std::to_string(child_) + "/status");
  constexpr std::string_view kName = "VmRSS:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kName)) return std::atoll(line.c_str() + kName.size()) * 1024;
  }
  return 0;
}

namespace {

int entries(const std::filesystem::path& folder) {
  std::error_code error;
  int count = 0;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) ++count;
  return count;
}

}  // namespace

int ServerProcess::descriptors() const { return entries("/proc/" + std::to_string(child_) + "/fd"); }
int ServerProcess::threads() const { return entries("/proc/" + std::to_string(child_) + "/task"); }

std::map<std::string, double> read_metrics(int port) {
  std::map<std::string, double> samples;
  std::istringstream text(http_get(port, "/metrics").body);
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t value = line.rfind(' ');
    if (value != std::string::npos) samples[line.substr(0, line.find_first_of("{ "))] += std::atof(&line[value]);
  }
  return samples;
}

bool comes_to_rest(int port) {
  return poll_until([port] {
    const auto metrics = read_metrics(port);
    const auto running = metrics.find("vllm:num_requests_running"), waiting = metrics.find("vllm:num_requests_waiting");
    return running != metrics.end() && waiting != metrics.end() && running->second + waiting->second == 0;
  });
}

}  // namespace octet::testing
