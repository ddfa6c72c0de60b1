// `octet serve` as a child process: what it says, what memory it holds, how it ends.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_folder.h"

namespace octet::testing {

// What a program finds around it.
struct Surroundings {
  std::vector<std::pair<std::string, std::string>> environment;  // added to what the test has
  std::filesystem::path folder;                                  // where it is started; empty: where the test is
  bool folder_is_gone = false;                                   // that (empty) folder is removed first
};

class ServerProcess {
 public:
  // Runs `octet serve` with these arguments.
  explicit ServerProcess(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});
  ~ServerProcess();  // kills what still runs
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Waits until the output holds the text; false: it ended, or 60 s (scaled) are over.
  bool says(const std::string& text);
  bool listens() { return says("listening on "); }
  bool serves() { return says(kServes); }
  bool served() const;
  int port() const;  // after listens() or serves()
  // The exit status, 128 + n where signal n ended it; nothing where it still runs after 60 s (scaled).
  std::optional<int> wait();
  void signal(int number) const;
  std::string output() const;
  std::int64_t resident_bytes() const;
  int descriptors() const;  // open now
  int threads() const;

 private:
  static constexpr const char* kServes = "requests of the full context";
  bool ended();

  TempFolder folder_;
  std::filesystem::path output_;
  pid_t child_ = -1;
  std::optional<int> status_;
};

// Samples of /metrics by name, summed over their labels.
std::map<std::string, double> read_metrics(int port);

// Waits, 60 s (scaled) at most, until no request runs or waits.
bool comes_to_rest(int port);

}  // namespace octet::testing
