#include "octet/tensor/block_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "octet/formats/safetensors.h"

namespace octet {
namespace {

formats::SafetensorsFile open_golden(const std::string& name) {
  auto file = formats::SafetensorsFile::open(std::string(OCTET_TEST_DATA) + "/quant/" + name);
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

// Bit for bit, but for the payload of NaN.
void expect_same(std::span<const float> got, const formats::StoredTensor& expected) {
  ASSERT_EQ(got.size_bytes(), expected.data.size()) << expected.name;
  for (std::size_t i = 0; i < got.size(); ++i) {
    float want;
    std::memcpy(&want, expected.data.data() + i * sizeof want, sizeof want);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got[i])) << expected.name << " " << i;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want)) << expected.name << " " << i;
    }
  }
}

struct Case {
  DType type;
  const char* blocks;  // in gguf_blocks.safetensors
  std::vector<const char*> matrices;
};
const std::vector<Case> kCases = {
    {DType::kF16, "F16", {"F16.gguf_py"}},    {DType::kBF16, "BF16", {"BF16.gguf_py"}},
    {DType::kQ8_0, "Q8_0", {"Q8_0.gguf_py"}}, {DType::kQ4_0, "Q4_0", {"Q4_0.gguf_py", "Q4_0.ggml"}},
    {DType::kQ4_1, "Q4_1", {"Q4_1.gguf_py"}},
};

void check(const formats::SafetensorsFile& file, DType type, const std::string& stored, const std::string& decoded) {
  const auto& tensors = file.tensors();
  ASSERT_TRUE(tensors.contains(stored) && tensors.contains(decoded)) << stored;
  const formats::StoredTensor& expected = tensors.find(decoded)->second;
  const std::int64_t rows = expected.shape[0], columns = expected.shape[1];
  const auto bytes = tensors.find(stored)->second.data;
  ASSERT_EQ(static_cast<std::int64_t>(bytes.size()), rows * bytes_of(type, columns)) << stored;
  std::vector<float> out(static_cast<std::size_t>(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r) {
    decode_row(type, bytes.data() + r * bytes_of(type, columns), out.data() + r * columns, columns);
  }
  expect_same(out, expected);
}

TEST(BlockFormats, DecodesSpecialBlocksExactly) {
  const auto file = open_golden("gguf_blocks.safetensors");
  for (const Case& test : kCases) {
    check(file, test.type, std::string(test.blocks) + ".blocks", std::string(test.blocks) + ".f32");
  }
}

TEST(BlockFormats, DecodesMatricesExactly) {
  const auto file = open_golden("gguf_matrix.safetensors");
  for (const Case& test : kCases) {
    for (const std::string name : test.matrices) check(file, test.type, name, name + ".f32");
  }
}

TEST(BlockFormats, DecodesAtAnyAddress) {
  std::vector<std::byte> bytes(1 + 34);
  const float value = -1.5f;
  for (int shift : {0, 1}) {
    std::memcpy(bytes.data() + shift, &value, sizeof value);
    float out = 0;
    decode_row(DType::kF32, bytes.data() + shift, &out, 1);
    EXPECT_EQ(out, value);
  }
}

TEST(BlockFormats, SaysWhatItDecodes) {
  EXPECT_EQ(decodable_types(), "F32, F16, BF16, Q8_0, Q4_0, Q4_1");
  for (const DType type : {DType::kI64, DType::kU8, DType::kBool, DType::kF64, DType::kQ6_K, DType::kF8E4M3}) {
    EXPECT_FALSE(can_decode(type)) << dtype_info(type).name;
  }
  float out = 0;
  const std::byte row[8] = {};
  // Matchers, not regular expressions: a linked library brings its own regcomp, which the sanitizers do not expect.
  EXPECT_DEATH(decode_row(DType::kI64, row, &out, 1), ::testing::HasSubstr("decoder != nullptr"));
  EXPECT_DEATH(decode_row(DType::kQ4_0, row, &out, 1), ::testing::HasSubstr("block_values"));
}

}  // namespace
}  // namespace octet
