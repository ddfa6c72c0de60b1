#include "octet/formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "octet/formats/checkpoint.h"
#include "octet/formats/gguf_names.h"
#include "tests/formats/decoder_weights.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_folder.h"

namespace octet::formats {
namespace {

using octet::testing::GgufWriter;
using octet::testing::TempFolder;
using octet::testing::tiny_gguf;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string open_error(const std::filesystem::path& path) {
  const auto opened = Checkpoint::open(path);
  if (!opened) return opened.error().message;
  const auto complete = octet::testing::require_decoder_weights(**opened);
  return complete ? "" : complete.error().message;
}

std::string error_of(const GgufWriter& writer) {
  const TempFolder folder;
  return open_error(folder.write("x.gguf", writer.bytes()));
}

TEST(Gguf, TypedAccessConvertsNothing) {
  GgufWriter writer;
  writer.u32("u", 7).i32("i", -7).f32("f", 0.5f).string("s", "text").strings("list", {"a", "", "c"});
  writer.array("bytes", GgufType::kU8, 3, "\x01\x02\xff").raw("yes", GgufType::kBool, "\x01");
  writer.raw("big", GgufType::kU64, std::string(8, '\xff'));
  const std::string bytes = writer.bytes();
  const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->integer("u"), 7);
  EXPECT_EQ(file->integer("i"), -7);
  EXPECT_EQ(file->number("f"), 0.5);
  EXPECT_EQ(file->string("s"), "text");
  EXPECT_EQ(file->boolean("yes"), true);
  EXPECT_THAT(file->strings("list").value(), ElementsAre("a", "", "c"));
  EXPECT_THAT(file->integers("bytes").value(), ElementsAre(1, 2, 255));
  EXPECT_EQ(file->integer("none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(file->integer("none").error().message, "x.gguf: key \"none\" is missing");
  EXPECT_EQ(file->number("u").error().message, "x.gguf: key \"u\" is u32, expected f32 or f64");
  EXPECT_EQ(file->strings("bytes").error().message, "x.gguf: key \"bytes\" is array of u8, expected array of string");
  EXPECT_FALSE(file->integer("f"));
  EXPECT_FALSE(file->integer("big"));  // 2^64 - 1 does not fit
  EXPECT_FALSE(file->string("list"));
  EXPECT_FALSE(file->boolean("u"));
  EXPECT_FALSE(file->integers("list"));
  EXPECT_FALSE(file->integers("u"));
  EXPECT_FALSE(file->numbers("bytes"));
}

TEST(Gguf, NamesTranslateBothWays) {
  for (const auto& [hf, gguf] : {std::pair{"model.embed_tokens.weight", "token_embd.weight"},
                                 {"lm_head.weight", "output.weight"},
                                 {"model.norm.weight", "output_norm.weight"},
                                 {"model.layers.12.self_attn.k_proj.bias", "blk.12.attn_k.bias"},
                                 {"model.layers.0.self_attn.q_norm.weight", "blk.0.attn_q_norm.weight"},
                                 {"model.layers.3.post_attention_layernorm.weight", "blk.3.ffn_norm.weight"},
                                 {"model.layers.3.mlp.shared_expert.up_proj.weight", "blk.3.ffn_up_shexp.weight"},
                                 {"model.layers.3.mlp.shared_expert_gate.weight", "blk.3.ffn_gate_inp_shexp.weight"},
                                 {"model.layers.3.mlp.gate_proj.weight", "blk.3.ffn_gate.weight"}}) {
    EXPECT_EQ(gguf_name(hf), gguf);
    EXPECT_EQ(hf_name(gguf), hf);
  }
  for (const char* name : {"", ".", "weight", "model.layers..mlp.gate_proj.weight", "model.layers.1.weight",
                           "model.layers.x.input_layernorm.weight", "model.norm.scale", "rope_freqs.weight"}) {
    EXPECT_EQ(gguf_name(name), std::nullopt) << name;
  }
}

TEST(Gguf, ATinyFileIsWhole) { EXPECT_EQ(error_of(tiny_gguf()), ""); }

// LOAD-05: crafted files. The whole suite runs in malformed_test.cc; here is what it leaves out.
TEST(LOAD05, CutAnywhereIsAnError) {
  const std::string whole = tiny_gguf().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const auto parsed = GgufFile::parse(as_bytes(cut), "cut.gguf");
    ASSERT_FALSE(parsed) << size;
    EXPECT_THAT(parsed.error().message, HasSubstr("cut.gguf: ")) << size;
  }
}

TEST(LOAD05, ScoresOfAnotherTypeOrLengthAreRefused) {
  const std::string floats(8 * sizeof(float), '\0');
  const auto with_scores = [](GgufType type, std::uint64_t count, std::string_view items) {
    return error_of(tiny_gguf().array("tokenizer.ggml.scores", type, count, items));
  };
  EXPECT_EQ(with_scores(GgufType::kF32, 8, floats), "");
  EXPECT_THAT(with_scores(GgufType::kU8, 8, floats.substr(0, 8)),
              HasSubstr("\"tokenizer.ggml.scores\" is array of u8"));
  EXPECT_THAT(with_scores(GgufType::kF32, 7, floats.substr(0, 28)),
              HasSubstr("\"tokenizer.ggml.scores\" holds 7 items"));
}

TEST(LOAD05, AlignmentOf2To30IsRefused) {
  EXPECT_THAT(error_of(tiny_gguf().u32("general.alignment", 1u << 30)), HasSubstr("general.alignment"));
}

struct NumberedType {
  DType dtype;
  std::uint32_t id;  // in the file
};
constexpr NumberedType kBlockTypes[] = {
    {DType::kQ4_0, 2},    {DType::kQ4_1, 3},   {DType::kQ5_0, 6},   {DType::kQ5_1, 7},    {DType::kQ8_0, 8},
    {DType::kQ2_K, 10},   {DType::kQ3_K, 11},  {DType::kQ4_K, 12},  {DType::kQ5_K, 13},   {DType::kQ6_K, 14},
    {DType::kIQ4_NL, 20}, {DType::kIQ3_S, 21}, {DType::kIQ2_S, 22}, {DType::kIQ4_XS, 23},
};

TEST(Gguf, BlockTypesHaveTheirSizes) {
  GgufWriter writer = tiny_gguf();
  for (const auto& [dtype, id] : kBlockTypes) {
    writer.tensor(dtype_info(dtype).name, {512, 3}, id,
                  std::string(static_cast<std::size_t>(bytes_of(dtype, 1536)), 'x'));
  }
  const std::string bytes = writer.bytes();
  const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf");
  ASSERT_TRUE(file) << file.error().message;
  for (const auto& [dtype, id] : kBlockTypes) {
    const StoredTensor& tensor = file->tensors().at(std::string(dtype_info(dtype).name));
    EXPECT_EQ(tensor.dtype, dtype);
    EXPECT_THAT(tensor.shape, ElementsAre(3, 512));
    EXPECT_EQ(static_cast<std::int64_t>(tensor.data.size()), bytes_of(dtype, 1536)) << tensor.name;
  }
}

TEST(LOAD05, RowsThatCutABlockAreRefused) {
  for (const auto& [dtype, id] : kBlockTypes) {
    const DTypeInfo& info = dtype_info(dtype);
    const std::int64_t inputs = info.block_values * 3 / 2;  // two rows are a whole number of blocks
    const std::string data(static_cast<std::size_t>(bytes_of(dtype, 2 * inputs)), 'x');
    EXPECT_THAT(
        error_of(tiny_gguf().tensor("extra.weight", {inputs, 2}, id, data)),
        HasSubstr(fmt::format("x.gguf: tensor extra.weight: rows of {} values are no whole number of {} blocks of {}",
                              inputs, info.name, info.block_values)));
  }
}

TEST(LOAD05, OtherTensorTypesAreRefusedByName) {
  for (const auto& [id, name] : {std::pair{18u, "18 (IQ3_XXS)"}, {9u, "9 (Q8_1)"}, {31u, "31"}, {999u, "999"}}) {
    EXPECT_THAT(error_of(tiny_gguf().tensor("extra.weight", {256}, id, std::string(256, 'x'))),
                AllOf(HasSubstr(fmt::format("tensor extra.weight: type {} is not supported", name)),
                      HasSubstr("supported are F32, F16, BF16, Q8_0,"), HasSubstr("IQ2_S")));
  }
}

TEST(LOAD05, HarmlessUnknownKeysAreIgnored) {
  EXPECT_EQ(error_of(tiny_gguf().string("some.author", "x").array("some.list", GgufType::kF64, 0, "")), "");
}

class SplitFile : public ::testing::Test {
 protected:
  // Parts of 5, 4 and 3 tensors; `number` is what each says of itself.
  static std::string part(int first, int last, int number, int count = 3, int tensors = 12) {
    GgufWriter writer = number == 0 ? octet::testing::tiny_gguf_metadata() : GgufWriter();
    writer.u16("split.no", static_cast<std::uint16_t>(number)).u16("split.count", static_cast<std::uint16_t>(count));
    writer.i32("split.tensors.count", tensors);
    octet::testing::add_tiny_gguf_tensors(writer, first, last);
    return writer.bytes();
  }
  void SetUp() override {
    folder_.write("m-00001-of-00003.gguf", part(0, 5, 0));
    folder_.write("m-00002-of-00003.gguf", part(5, 9, 1));
    folder_.write("m-00003-of-00003.gguf", part(9, 12, 2));
  }
  std::string error(const std::string& name = "m-00001-of-00003.gguf") const {
    return open_error(folder_.path() / name);
  }

  TempFolder folder_;
};

TEST_F(SplitFile, LOAD05_PartsLoadAsOne) {
  EXPECT_EQ(error(), "");
  const auto whole = Checkpoint::open(folder_.write("whole.gguf", tiny_gguf().bytes()));
  const auto split = Checkpoint::open(folder_.path() / "m-00001-of-00003.gguf");
  ASSERT_TRUE(whole && split);
  EXPECT_EQ((*split)->weight_bytes(), (*whole)->weight_bytes());
  for (const char* name : {"model.embed_tokens.weight", "model.layers.0.mlp.up_proj.weight", "lm_head.weight"}) {
    const StoredTensor *a = (*split)->find(name), *b = (*whole)->find(name);
    ASSERT_TRUE(a != nullptr && b != nullptr) << name;
    EXPECT_TRUE(std::ranges::equal(a->data, b->data)) << name;
    (*split)->prefetch(*a);
    (*split)->release(*a);
  }
}

TEST_F(SplitFile, LOAD05_MissingPartsAreListed) {
  std::filesystem::remove(folder_.path() / "m-00002-of-00003.gguf");
  std::filesystem::remove(folder_.path() / "m-00003-of-00003.gguf");
  EXPECT_THAT(error(), AllOf(HasSubstr("m-00002-of-00003.gguf"), HasSubstr("m-00003-of-00003.gguf")));
}

TEST_F(SplitFile, LOAD05_SwappedAndForeignPartsAreRefused) {
  folder_.write("m-00002-of-00003.gguf", part(9, 12, 2));
  folder_.write("m-00003-of-00003.gguf", part(5, 9, 1));
  EXPECT_THAT(error(), AllOf(HasSubstr("m-00002-of-00003.gguf"), HasSubstr("split.no")));
  SetUp();
  folder_.write("m-00002-of-00003.gguf", part(5, 9, 1, 4));
  EXPECT_THAT(error(), HasSubstr("split.count"));
  SetUp();
  folder_.write("m-00002-of-00003.gguf", part(4, 9, 1));
  EXPECT_THAT(error(), AllOf(HasSubstr("blk.0.attn_v.weight"), HasSubstr("m-00001"), HasSubstr("m-00002")));
  SetUp();
  folder_.write("m-00002-of-00003.gguf", part(5, 8, 1));
  EXPECT_THAT(error(), HasSubstr("split.tensors.count"));
}

TEST_F(SplitFile, LOAD05_AnotherPartThanTheFirstIsRefused) {
  EXPECT_THAT(error("m-00002-of-00003.gguf"), HasSubstr("m-00001-of-00003.gguf"));
  std::filesystem::rename(folder_.path() / "m-00001-of-00003.gguf", folder_.path() / "renamed.gguf");
  EXPECT_THAT(error("renamed.gguf"), AllOf(HasSubstr("split.count"), HasSubstr("-00001-of-00003.gguf")));
}

}  // namespace
}  // namespace octet::formats
