// `octet serve` as a process of its own, on a free port.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace octet::testing {

class ServerProcess {
 public:
  // Runs the program; arguments follow `serve`.
  explicit ServerProcess(const std::vector<std::string>& arguments);
  // Runs a function in a child process; its value is the exit status. No other thread may exist.
  explicit ServerProcess(const std::function<int()>& body);
  ~ServerProcess();  // kills what still runs
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Reads the output until the text appears; false at its end or after 60 s.
  bool wait_for(const std::string& text);
  // The port of the first URL in the output; waits for it. 0: none came.
  int port();
  const std::string& output() const { return output_; }
  pid_t pid() const { return child_; }
  void signal(int number);
  // Waits for the end: the exit status, or minus the signal that ended it; -1000 after 60 s.
  int wait();

 private:
  template <typename Body>
  void start(const Body& body);

  pid_t child_ = -1;
  int pipe_ = -1;
  std::string output_;
};

}  // namespace octet::testing
