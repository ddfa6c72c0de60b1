// The suite of malformed model files (tests/golden/malformed): makes them and holds a program to the manifest.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace octet::testing {

struct MalformedEntry {
  std::string name, path, format, wrong;
  std::string outcome;             // "error", "ok" or "either"
  std::vector<std::string> names;  // what a refusal must say
  double seconds = 0;
  double extra_mib = 0;
  bool heavy = false;
};

// tests/golden/malformed/manifest.json.
std::vector<MalformedEntry> malformed_entries();

// Writes the files into the folder with the suite's generator. `only`: the entries whose names start so.
void make_malformed(const std::filesystem::path& folder, bool heavy, const std::string& only = "");

// How a program is started on a model: command + path. It refuses by ending with another status than 0; it accepts by
// ending with 0 or by printing `ready`.
struct MalformedProgram {
  std::vector<std::string> command;
  std::string ready;
};

class MalformedChecker {
 public:
  // control: a model that the program accepts; its memory is what "extra" counts from.
  MalformedChecker(MalformedProgram program, std::filesystem::path folder, const std::string& control);
  // Starts the program on the entry's file, or on each file of its folder of cases, and adds test failures for what the
  // manifest forbids: a crash, a sanitizer's report, the wrong outcome, a name left out, and (Release only) more time
  // or memory than allowed.
  void check(const MalformedEntry& entry) const;
  // The same for every entry of a format. Returns how many there were.
  int check_all(const std::string& format) const;

 private:
  void check_file(const MalformedEntry& entry, const std::filesystem::path& file) const;

  MalformedProgram program_;
  std::filesystem::path folder_;
  std::int64_t control_kib_ = 0;
};

}  // namespace octet::testing
