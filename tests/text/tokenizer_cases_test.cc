// TOK-02: added tokens of every flag, byte fallback, and the components one by one. The ids and texts are those of
// `tokenizers` 0.23.3.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "octet/base/json.h"
#include "octet/text/tokenizer.h"

namespace octet::text {
namespace {

using Ids = std::vector<TokenId>;

constexpr const char* kDecoder = R"({"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]})";

enum class Added { kNone, kAll, kGap };

Json added_token(TokenId id, const char* content, const char* flag = "", bool special = true) {
  Json token = {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", special}};
  if (*flag != 0) token[flag] = true;
  return token;
}

Json added_tokens(Added added) {
  if (added == Added::kNone) return Json::array();
  if (added == Added::kGap) return {added_token(400, "<A>"), added_token(700, "<B>", "", false)};
  return {added_token(358, "<A>", "lstrip"),
          added_token(359, "<B>", "rstrip"),
          added_token(360, "<C>", "single_word"),
          added_token(361, "<D>", "normalized", false),
          added_token(362, "<E>", "", false),
          added_token(363, "<EE>"),
          added_token(364, "<s>"),
          added_token(356, "Go", "", false)};
}

// Printable ASCII (0 to 94), the mark (95), all bytes (96 to 351), and six merges; members of `changes` replace its
// own.
std::unique_ptr<Tokenizer> make(Added added, const std::string& changes) {
  Json vocabulary = Json::object(), merges = Json::array();
  const auto add = [&](const std::string& token) { vocabulary[token] = vocabulary.size(); };
  for (char c = ' '; c <= '~'; ++c) add(std::string(1, c));
  add("▁");
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte));
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"h", "e"}, {"▁", "x"}, {"▁", "h"}, {"▁h", "i"}, {"G", "o"}, {"x", "y"}}) {
    add(left + right);
    merges.push_back({left, right});
  }
  Json json = {{"added_tokens", added_tokens(added)},
               {"model", {{"type", "BPE"}, {"byte_fallback", true}, {"vocab", vocabulary}, {"merges", merges}}}};
  json["decoder"] = parse_json(kDecoder).value();
  json.update(parse_json(changes).value());
  auto made = Tokenizer::from_json(json.dump());
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

struct Case {
  const char* name;
  Added added;
  const char* changes;
  const char* text;
  Ids ids;
  const char* decoded;
  const char* decoded_skip;  // special tokens left out
};

// The decoded text of a normalized added token is its content as written; 0.23 gives it normalized, as text gives it.
const std::vector<Case>& cases() {
  static const std::vector<Case> table = {
      {"lstrip takes the space before", Added::kAll, R"({})", "x <A> y", {88, 358, 0, 89}, "x<A> y", "x y"},
      {"rstrip takes the space behind", Added::kAll, R"({})", "x <B> y", {88, 0, 359, 89}, "x <B>y", "x y"},
      {"single_word",
       Added::kAll,
       R"({})",
       "x<C>y <C> z",
       {88, 28, 35, 30, 89, 0, 360, 0, 90},
       "x<C>y <C> z",
       "x<C>y  z"},
      {"normalized under Lowercase",
       Added::kAll,
       R"({"normalizer": {"type": "Lowercase"}})",
       "<d><D>",
       {361, 361},
       "<D><D>",
       "<D><D>"},
      {"not normalized under Lowercase",
       Added::kAll,
       R"({"normalizer": {"type": "Lowercase"}})",
       "<a><A>",
       {28, 65, 30, 358},
       "<a><A>",
       "<a>"},
      {"the longer of one start", Added::kAll, R"({})", "<EE><E>", {363, 362}, "<EE><E>", "<E>"},
      {"no space between", Added::kAll, R"({})", "<s>G", {364, 39}, "<s>G", "G"},
      {"id inside the vocabulary", Added::kAll, R"({})", "xGo <s>Go", {88, 356, 0, 364, 356}, "xGo <s>Go", "xGo Go"},
      {"ids with a gap are numbered on", Added::kGap, R"({})", "<A>x<B>", {358, 88, 359}, "<A>x<B>", "x<B>"},
      {"NFC",
       Added::kNone,
       R"({"normalizer": {"type": "NFC"}})",
       "fi ｆｕｌｌ é",
       {70, 73, 0, 335, 285, 230, 335, 285, 245, 335, 285, 236, 335, 285, 236, 0, 291, 265},
       "fi ｆｕｌｌ é",
       "fi ｆｕｌｌ é"},
      {"NFKC",
       Added::kNone,
       R"({"normalizer": {"type": "NFKC"}})",
       "fi ｆｕｌｌ é",
       {70, 73, 0, 70, 85, 76, 76, 0, 291, 265},
       "fi full é",
       "fi full é"},
      {"NFKC of a ligature", Added::kNone, R"({"normalizer": {"type": "NFKC"}})", "ﬁ", {70, 73}, "fi", "fi"},
      {"byte fallback", Added::kNone, R"({})", "\a𓀀", {103, 336, 243, 224, 224}, "\a𓀀", "\a𓀀"},
      {"Metaspace first",
       Added::kAll,
       R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}})",
       "x hi<s>hi x",
       {353, 355, 364, 72, 73, 353},
       " x hi<s>hi x",
       " x hihi x"},
      {"Metaspace always",
       Added::kAll,
       R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}})",
       "x hi<s>hi x",
       {353, 355, 364, 355, 353},
       " x hi<s> hi x",
       " x hi hi x"},
      {"Metaspace never",
       Added::kAll,
       R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": true}})",
       "x hi<s>hi x",
       {88, 355, 364, 72, 73, 353},
       "x hi<s>hi x",
       "x hihi x"},
      {"Metaspace first behind a token",
       Added::kAll,
       R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}})",
       "<s>hi x",
       {364, 72, 73, 353},
       "<s>hi x",
       "hi x"},
      {"Metaspace first behind a space",
       Added::kAll,
       R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}})",
       " hi",
       {355},
       " hi",
       " hi"},
      {"Metaspace without split",
       Added::kAll,
       R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false}})",
       "x hi  hi",
       {353, 355, 95, 355},
       " x hi  hi",
       " x hi  hi"},
      {"Metaspace first where the start is stripped",
       Added::kNone,
       R"({"normalizer": {"type": "Strip", "strip_left": true, "strip_right": false}, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}})",
       " hi",
       {72, 73},
       "hi",
       "hi"},
      {"Replace text",
       Added::kNone,
       R"({"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}})",
       " hi x",
       {355, 353},
       " hi x",
       " hi x"},
      {"Replace pattern",
       Added::kNone,
       R"({"normalizer": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}})",
       " a   hi",
       {0, 65, 355},
       " a hi",
       " a hi"},
      {"Prepend",
       Added::kAll,
       R"({"normalizer": {"type": "Prepend", "prepend": "▁"}})",
       "hi<s>hi",
       {355, 364, 355},
       " hi<s> hi",
       " hi hi"},
      {"Strip",
       Added::kNone,
       R"({"normalizer": {"type": "Strip", "strip_left": true, "strip_right": true}})",
       " \t hi \n",
       {72, 73},
       "hi",
       "hi"},
      {"Strip left",
       Added::kNone,
       R"({"normalizer": {"type": "Strip", "strip_left": true, "strip_right": false}})",
       " hi ",
       {72, 73, 0},
       "hi ",
       "hi "},
      {"Split Removed",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "Removed", "invert": false}})",
       "heyxxyxhe",
       {352, 89, 89, 352},
       "heyyhe",
       "heyyhe"},
      {"Split inverted Removed",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "Removed", "invert": true}})",
       "heyxxyxhe",
       {88, 88, 88},
       "xxx",
       "xxx"},
      {"Split Isolated",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "Isolated", "invert": false}})",
       "heyxxyxhe",
       {352, 89, 88, 88, 89, 88, 352},
       "heyxxyxhe",
       "heyxxyxhe"},
      {"Split inverted Isolated",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "Isolated", "invert": true}})",
       "heyxxyxhe",
       {352, 89, 88, 88, 89, 88, 352},
       "heyxxyxhe",
       "heyxxyxhe"},
      {"Split MergedWithPrevious",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "MergedWithPrevious", "invert": false}})",
       "heyxxyxhe",
       {352, 89, 88, 88, 89, 88, 352},
       "heyxxyxhe",
       "heyxxyxhe"},
      {"Split inverted MergedWithPrevious",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "MergedWithPrevious", "invert": true}})",
       "heyxxyxhe",
       {352, 89, 88, 357, 88, 352},
       "heyxxyxhe",
       "heyxxyxhe"},
      {"Split MergedWithNext",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "MergedWithNext", "invert": false}})",
       "heyxxyxhe",
       {352, 89, 88, 357, 88, 352},
       "heyxxyxhe",
       "heyxxyxhe"},
      {"Split inverted MergedWithNext",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "MergedWithNext", "invert": true}})",
       "heyxxyxhe",
       {352, 89, 88, 88, 89, 88, 352},
       "heyxxyxhe",
       "heyxxyxhe"},
      {"Split Contiguous",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "Contiguous", "invert": false}})",
       "heyxxyxhe",
       {352, 89, 88, 88, 89, 88, 352},
       "heyxxyxhe",
       "heyxxyxhe"},
      {"Split inverted Contiguous",
       Added::kNone,
       R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "Contiguous", "invert": true}})",
       "heyxxyxhe",
       {352, 89, 88, 88, 89, 88, 352},
       "heyxxyxhe",
       "heyxxyxhe"},
  };
  return table;
}

class TokenizerCase : public ::testing::TestWithParam<Case> {};

TEST_P(TokenizerCase, IdsAndTextEqualTheReference) {
  const Case& expected = GetParam();
  const auto tokenizer = make(expected.added, expected.changes);
  EXPECT_EQ(tokenizer->encode(expected.text, {.add_special = false}).value(), expected.ids) << expected.name;
  EXPECT_EQ(tokenizer->decode(expected.ids, false), expected.decoded) << expected.name;
  EXPECT_EQ(tokenizer->decode(expected.ids, true), expected.decoded_skip) << expected.name;
}

INSTANTIATE_TEST_SUITE_P(Tok02, TokenizerCase, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.name;
  std::erase_if(name, [](char c) { return c == ' ' || c == '_'; });
  return name;
});

TEST(TokenizerCase, RunsOfByteTokensThatAreNotUtf8) {
  const auto tokenizer = make(Added::kNone, R"({"decoder": {"type": "ByteFallback"}})");
  const std::string bad = "\uFFFD";
  // As a whole: one for each token of the run.
  EXPECT_EQ(tokenizer->decode(Ids{324, 285}), bad + bad);
  EXPECT_EQ(tokenizer->decode(Ids{324, 285, 256}), "你");
  EXPECT_EQ(tokenizer->decode(Ids{324, 285, 256, 351}), bad + bad + bad + bad);
  EXPECT_EQ(tokenizer->decode(Ids{161, 224, 88, 161}), bad + bad + "xA");
  EXPECT_EQ(tokenizer->decode(Ids{333, 256, 224}), bad + bad + bad);
  // As a stream, a character that is complete has been given out already.
  Detokenizer stream(*tokenizer, true);
  EXPECT_EQ(stream.push(324) + stream.push(285), "");
  EXPECT_EQ(stream.push(256), "你");
  EXPECT_EQ(stream.push(351), bad);
  EXPECT_EQ(stream.push(324), "");
  EXPECT_EQ(stream.push(88), bad + "x");
  EXPECT_EQ(stream.flush(), "");
}

}  // namespace
}  // namespace octet::text
