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
  std::vector<const char*> writers;  // of matrices in gguf_matrix.safetensors
};
const std::vector<Case> kCases = {
    {DType::kF16, {"gguf_py"}},  {DType::kBF16, {"gguf_py"}},
    {DType::kQ8_0, {"gguf_py"}}, {DType::kQ4_0, {"gguf_py", "ggml"}},
    {DType::kQ4_1, {"gguf_py"}}, {DType::kQ5_0, {"gguf_py", "ggml"}},
    {DType::kQ5_1, {"gguf_py"}}, {DType::kQ2_K, {"ggml"}},
    {DType::kQ3_K, {"ggml"}},    {DType::kQ4_K, {"ggml"}},
    {DType::kQ5_K, {"ggml"}},    {DType::kQ6_K, {"ggml"}},
    {DType::kIQ4_NL, {"ggml"}},  {DType::kIQ4_XS, {"ggml"}},
    {DType::kIQ3_S, {"ggml"}},   {DType::kIQ2_S, {"ggml"}},
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
    const std::string name(dtype_info(test.type).name);
    check(file, test.type, name + ".blocks", name + ".f32");
  }
}

TEST(BlockFormats, DecodesMatricesExactly) {
  const auto file = open_golden("gguf_matrix.safetensors");
  for (const Case& test : kCases) {
    for (const char* writer : test.writers) {
      const std::string name = fmt::format("{}.{}", dtype_info(test.type).name, writer);
      check(file, test.type, name, name + ".f32");
    }
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
  EXPECT_EQ(decodable_types(),
            "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, IQ3_S, IQ2_S");
  for (const DType type : {DType::kI64, DType::kU8, DType::kBool, DType::kF64, DType::kMXFP4, DType::kF8E4M3}) {
    EXPECT_FALSE(can_decode(type)) << dtype_info(type).name;
  }
  float out = 0;
  const std::byte row[8] = {};
  // Matchers, not regular expressions: a linked library brings its own regcomp, which the sanitizers do not expect.
  EXPECT_DEATH(decode_row(DType::kI64, row, &out, 1), ::testing::HasSubstr("decoder != nullptr"));
  EXPECT_DEATH(decode_row(DType::kQ4_0, row, &out, 1), ::testing::HasSubstr("block_values"));
  EXPECT_DEATH(decode_row(DType::kQ4_K, row, &out, 32), ::testing::HasSubstr("block_values"));
}

}  // namespace
}  // namespace octet
