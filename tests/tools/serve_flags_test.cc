// The flags of `octet serve` against those of `vllm serve`, and against their page in the documentation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/child_process.h"

namespace octet::testing {
namespace {

std::string page() {
  static const std::string text = run_child({OCTET_PROGRAM, "serve", "--help=markdown"}, 60).output;
  return text;
}

// The class of each flag, by its long name.
std::map<std::string, std::string> classes_here() {
  std::map<std::string, std::string> classes;
  std::istringstream lines(page());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `--")) continue;
    const std::string name = line.substr(3, line.find_first_of(" ,`", 3) - 3);
    const std::string text = line.substr(line.find("` | ") + 4);
    classes[name] = text.starts_with("no effect here: ")        ? "accepted"
                    : text.starts_with("not in this version: ") ? "later"
                                                                : "built";
  }
  return classes;
}

TEST(ServeFlags, EveryFlagOfVllmIsInItsClass) {
  const auto here = classes_here();
  std::ifstream file(std::string(OCTET_TEST_DATA) + "/server/vllm_serve_flags.tsv");
  std::string line;
  std::getline(file, line);
  int rows = 0;
  while (std::getline(file, line)) {
    const std::string flags = line.substr(line.find('\t') + 1);
    const std::string wanted = line.substr(line.rfind('\t') + 1);
    if (!flags.starts_with("--")) continue;  // MODEL and -h
    ++rows;
    const std::string name = flags.substr(0, flags.find_first_of(" \t"));
    const auto found = here.find(name);
    if (found == here.end()) {
      ADD_FAILURE() << name << " is unknown";
    } else {
      EXPECT_EQ(found->second, wanted) << name;
    }
  }
  EXPECT_EQ(rows, 317);
}

TEST(ServeFlags, TheirPageIsWhatTheProgramPrints) {
  std::stringstream written;
  written << std::ifstream(std::string(OCTET_TEST_DATA) + "/../../docs/flags.md").rdbuf();
  EXPECT_TRUE(written.str() == page()) << "run: build/octet serve --help=markdown > docs/flags.md";
}

TEST(ServeFlags, AreFoundByAWord) {
  const std::string text = run_child({OCTET_PROGRAM, "serve", "--help=max"}, 60).output;
  for (const char* name : {"--max-model-len", "--max-num-seqs", "--max-loras", "--h11-max-header-count"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(name));
  }
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("--uds")));
}

}  // namespace
}  // namespace octet::testing
