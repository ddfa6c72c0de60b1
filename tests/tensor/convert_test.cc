#include "octet/tensor/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace octet {
namespace {

std::vector<std::vector<std::string>> read_csv(const std::string& name) {
  std::ifstream file(std::string(OCTET_TEST_DATA) + "/quant/scalars/" + name);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);  // the head
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    auto& row = rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
  }
  return rows;
}

std::uint32_t hex(const std::string& text) { return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16)); }

TEST(Convert, RoundsHardCasesAsTheReferenceDoes) {
  const auto rows = read_csv("round_f32.csv");
  ASSERT_EQ(rows.size(), 6930u);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 4u);
    const float value = std::bit_cast<float>(hex(row[0]));
    if (row[1] == "nan") {
      EXPECT_TRUE(std::isnan(e4m3_to_f32(f32_to_e4m3(value)))) << row[0];
    } else {
      EXPECT_EQ(f32_to_e4m3(value), hex(row[1])) << row[0];
    }
    if (row[2] == "nan") {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << row[0];
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << row[0];
    } else {
      EXPECT_EQ(f32_to_bf16(value), hex(row[2])) << row[0];
      EXPECT_EQ(f32_to_f16(value), hex(row[3])) << row[0];
    }
  }
}

TEST(Convert, DecodesEveryE4M3Code) {
  const auto rows = read_csv("e4m3fn_decode.csv");
  ASSERT_EQ(rows.size(), 256u);
  for (const auto& row : rows) {
    const float got = e4m3_to_f32(static_cast<std::uint8_t>(hex(row[0])));
    if (row[1] == "nan") {
      EXPECT_TRUE(std::isnan(got)) << row[0];
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got), hex(row[1])) << row[0];
    }
  }
}

TEST(Convert, EveryNarrowValueSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    if (const float f = f16_to_f32(code); !std::isnan(f)) {
      EXPECT_EQ(f32_to_f16(f), code);
    }
    if (const float b = bf16_to_f32(code); !std::isnan(b)) {
      EXPECT_EQ(f32_to_bf16(b), code);
    }
  }
  EXPECT_EQ(f16_to_f32(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0xfc00), -std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace octet
