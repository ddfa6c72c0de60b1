#include "octet/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "octet/formats/checkpoint.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temp_folder.h"

namespace octet::formats {
namespace {

using octet::testing::safetensors_bytes;
using ::testing::HasSubstr;

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string error_of(const std::string& file) {
  const auto parsed = SafetensorsFile::parse(as_bytes(file), "x.safetensors");
  return parsed ? "" : parsed.error().message;
}

TEST(Safetensors, ReadsTensorsInPlace) {
  const std::string file = safetensors_bytes({{"a", "BF16", {2, 3}, std::string(12, 'a')},
                                              {"empty", "F32", {0}, ""},
                                              {"scalar", "F64", {}, std::string(8, 's')},
                                              {"b", "F8_E4M3", {5}, std::string(5, 'b')}});
  const auto parsed = SafetensorsFile::parse(as_bytes(file), "x");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 4u);
  const StoredTensor& a = parsed->at("a");
  EXPECT_EQ(a.dtype, DType::kBF16);
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(a.data.data(), "aaaaaaaaaaaa", 12), 0);
  EXPECT_EQ(parsed->at("empty").data.size(), 0u);
  EXPECT_EQ(parsed->at("scalar").shape.size(), 0u);
  EXPECT_EQ(static_cast<char>(parsed->at("b").data[4]), 'b');
}

// LOAD-03: hostile headers. The whole suite runs in malformed_test.cc; here are the case's own inputs.
TEST(LOAD03, LengthsAreCheckedBeforeUse) {
  std::string file(1024, ' ');
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{200'000'000}}) {
    std::memcpy(file.data(), &length, sizeof length);
    EXPECT_THAT(error_of(file), HasSubstr("x.safetensors: header length"));
  }
  EXPECT_NE(error_of(safetensors_bytes("", "")), "");
  EXPECT_THAT(error_of("1234567"), HasSubstr("too short"));
}

TEST(LOAD03, HeadersThatAreRefused) {
  const std::string deep = "{\"__metadata__\":{\"a\":" + std::string(10'000, '[') + std::string(10'000, ']') + "}}";
  struct Case {
    std::string header, says;
  };
  for (
      const Case& test : std::vector<Case>{
          {"[]", "does not start with {"},
          {" {}", "does not start with {"},
          {"{\"\xff\":1}", "not valid JSON"},
          {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
           "duplicate key \"a\""},
          {R"({"a":{"dtype":"F7","shape":[0],"data_offsets":[0,0]}})", "tensor a: dtype \"F7\" is not known"},
          {R"({"a":{"dtype":null,"shape":[0],"data_offsets":[0,0]}})", "tensor a: dtype is not a string"},
          {R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", "tensor a: no shape"},
          {R"({"__metadata__":{"a":1}})", "__metadata__ \"a\" is not a string"},
          {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"extra":1}})", "tensor a: unknown key \"extra\""},
          {deep, "nested deeper"},
      }) {
    const std::string error = error_of(safetensors_bytes(test.header, ""));
    EXPECT_THAT(error, HasSubstr("x.safetensors: ")) << test.header.substr(0, 100);
    EXPECT_THAT(error, HasSubstr(test.says)) << test.header.substr(0, 100);
  }
  EXPECT_EQ(error_of(safetensors_bytes("{}", "")), "");  // a legal file without tensors
}

TEST(LOAD03, AnEmptyFileLacksTensorsAndNarrowTypesAreRefusedWhenNeeded) {
  octet::testing::TempFolder folder;
  std::filesystem::copy(std::string(OCTET_TEST_DATA) + "/models/qwen3/config.json", folder.path());
  folder.write("model.safetensors", safetensors_bytes("{}", ""));
  auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  const auto missing = (*checkpoint)->require("model.norm.weight", {80});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("model.safetensors: weight model.norm.weight is missing"));

  folder.write("model.safetensors", safetensors_bytes({{"a", "F8_E4M3", {4}, "1234"},
                                                       {"b", "F4", {4}, "12"},
                                                       {"c", "F8_E8M0", {4}, "1234"},
                                                       {"d", "I64", {1}, "12345678"}}));
  checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  for (const auto& [name, type, size] :
       {std::tuple{"a", "F8_E4M3", 4}, {"b", "F4", 4}, {"c", "F8_E8M0", 4}, {"d", "I64", 1}}) {
    const auto refused = (*checkpoint)->require(name, {size});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(refused.error().message,
                HasSubstr(fmt::format("weight {} is of type {}; supported are F32", name, type)));
  }
}

TEST(LOAD03, AMillionTensorsAreRefusedByTheirNumber) {
  std::string header = "{\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
  header.reserve(60'000'000);
  for (int i = 0; i < 1'000'000; ++i) {
    header += fmt::format(",\"t{}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", i);
  }
  header += "}";
  EXPECT_THAT(error_of(safetensors_bytes(header, "")), HasSubstr("more than 2000000 values"));
}

}  // namespace
}  // namespace octet::formats
