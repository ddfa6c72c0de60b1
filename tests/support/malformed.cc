#include "tests/support/malformed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "tests/support/child_process.h"

namespace octet::testing {
namespace {

constexpr bool kRelease = std::string_view(OCTET_BUILD_TYPE) == "Release";

std::filesystem::path suite() { return std::filesystem::path(OCTET_TEST_DATA) / "malformed"; }

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

std::vector<MalformedEntry> malformed_entries() {
  const Json manifest = parse_json(read_file(suite() / "manifest.json", std::size_t{1} << 24).value()).value();
  std::vector<MalformedEntry> entries;
  for (const Json& item : manifest.at("entries")) {
    entries.push_back({item.at("name"), item.at("path"), item.at("format"), item.at("wrong"), item.at("outcome"),
                       item.at("names"), item.at("limits").at("seconds"), item.at("limits").at("extra_mib"),
                       item.value("heavy", false)});
  }
  return entries;
}

void make_malformed(const std::filesystem::path& folder, bool heavy, const std::string& only) {
  std::vector<std::string> command = {"python3", (suite() / "make_malformed.py").string(), folder.string()};
  if (heavy) command.push_back("--heavy");
  if (!only.empty()) command.insert(command.end(), {"--only", only});
  const ChildOutcome made = run_child(command, 300 * time_scale());
  ASSERT_EQ(made.exit_code, 0) << made.output;
}

MalformedChecker::MalformedChecker(MalformedProgram program, std::filesystem::path folder, const std::string& control)
    : program_(std::move(program)), folder_(std::move(folder)) {
  std::vector<std::string> command = program_.command;
  command.push_back((folder_ / control).string());
  control_kib_ = run_child(command, 60 * time_scale(), program_.ready).peak_kib;
}

void MalformedChecker::check(const MalformedEntry& entry) const {
  const auto path = folder_ / entry.path;
  const bool folder_of_cases = entry.format == "gguf" && std::filesystem::is_directory(path);
  if (!folder_of_cases) return check_file(entry, path);
  int cases = 0;
  for (const auto& item : std::filesystem::directory_iterator(path)) {
    check_file(entry, item.path());
    ++cases;
  }
  EXPECT_GT(cases, 0) << entry.name;
}

void MalformedChecker::check_file(const MalformedEntry& entry, const std::filesystem::path& file) const {
  SCOPED_TRACE(entry.name + " (" + entry.wrong + "): " + file.string());
  std::vector<std::string> command = program_.command;
  command.push_back(file.string());
  const double limit = entry.seconds * time_scale() * (kRelease ? 1 : 30);
  const ChildOutcome outcome = run_child(command, limit, program_.ready);
  EXPECT_FALSE(outcome.timed_out) << "took longer than " << limit << " s\n" << outcome.output;
  if (outcome.timed_out) return;
  const bool accepted = outcome.ready || outcome.exit_code == 0;
  EXPECT_TRUE(outcome.ready || outcome.signal == 0) << "ended by signal " << outcome.signal << "\n" << outcome.output;
  for (const char* report : {"Sanitizer", "runtime error:", "terminate called"}) {
    EXPECT_EQ(outcome.output.find(report), std::string::npos) << outcome.output;
  }
  // Root reads what has no permission bits.
  const bool readable_by_root = entry.name == "st-no-permission" && ::geteuid() == 0;
  if (entry.outcome == "ok" || readable_by_root) {
    EXPECT_TRUE(accepted) << outcome.output;
  } else if (entry.outcome == "error") {
    EXPECT_FALSE(accepted) << "was accepted\n" << outcome.output;
  }
  if (outcome.ready) EXPECT_EQ(outcome.exit_code, 0) << "after SIGTERM\n" << outcome.output;
  if (!accepted) {
    EXPECT_EQ(std::ranges::count(outcome.output, '\n'), 1) << "a refusal is one line\n" << outcome.output;
    const std::string output = lower(outcome.output);
    for (const std::string& name : entry.names) {
      EXPECT_NE(output.find(lower(name)), std::string::npos) << "does not name " << name << "\n" << outcome.output;
    }
  }
  if (kRelease) {
    EXPECT_LE(static_cast<double>(outcome.peak_kib - control_kib_) / 1024, entry.extra_mib) << "MiB of memory";
  }
}

int MalformedChecker::check_all(const std::string& format) const {
  int checked = 0;
  for (const MalformedEntry& entry : malformed_entries()) {
    if (entry.format != format) continue;
    check(entry);
    ++checked;
  }
  return checked;
}

}  // namespace octet::testing
