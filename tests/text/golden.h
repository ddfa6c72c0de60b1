// Reading golden files of the text room.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "octet/base/json.h"

namespace octet::text::testing {

inline std::string golden_path(const std::string& name) { return std::string(OCTET_TEST_DATA) + "/text/" + name; }

inline std::string read_golden(const std::string& name) {
  std::ifstream file(golden_path(name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

// One value a line.
inline std::vector<Json> read_jsonl(const std::string& name) {
  std::vector<Json> records;
  std::stringstream file(read_golden(name));
  for (std::string line; std::getline(file, line);) {
    auto parsed = parse_json(line, {.max_depth = 100, .allow_duplicate_keys = false});
    EXPECT_TRUE(parsed) << name << ": " << line.substr(0, 100);
    if (parsed) records.push_back(*std::move(parsed));
  }
  EXPECT_FALSE(records.empty()) << name;
  return records;
}

}  // namespace octet::text::testing
