// Vocabularies that are no tokenizer.json: against the libraries they were made for, beside their configs, and broken.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "octet/base/json.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/gguf_pre_types.h"
#include "octet/text/tokenizer/token_borders.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tokenizer_cases.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

using octet::testing::TempFolder;
using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> opened(const std::filesystem::path& path) {
  auto made = Tokenizer::open(path);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *std::move(made) : nullptr;
}

std::string error_of(const Result<std::unique_ptr<Tokenizer>>& made) {
  EXPECT_FALSE(made);
  return made ? "" : made.error().message;
}

void expect_error(const Result<std::unique_ptr<Tokenizer>>& made, const std::string& part) {
  const std::string message = error_of(made);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

struct Tiny {
  const char* path;
  const char* folder;
};

class TinyVocabulary : public ::testing::TestWithParam<Tiny> {};

TEST_P(TinyVocabulary, MatchesReference) {
  const auto tokenizer = opened(testing::golden_path(GetParam().path));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(octet::testing::check_tokenizer_cases(*tokenizer, std::string(GetParam().folder) + "/cases.jsonl"), 306U);
}

INSTANTIATE_TEST_SUITE_P(Files, TinyVocabulary,
                         ::testing::Values(Tiny{"tiny-sp-bpe/tokenizer.model", "tiny-sp-bpe"},
                                           Tiny{"tiny-sp-unigram", "tiny-sp-unigram"},
                                           Tiny{"tiny-gguf-spm/vocab.gguf", "tiny-gguf-spm"}),
                         [](const auto& info) {
                           std::string name = info.param.folder;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(VocabularyFiles, GgufSentencePieceStreams) {
  const auto tokenizer = opened(testing::golden_path("tiny-gguf-spm"));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(octet::testing::check_token_streams(*tokenizer, "tiny-gguf-spm"), 52U);
}

// SentencePiece never finds control symbols in text. A chat template has to be able to write them.
TEST(SentencePiece, ControlPiecesComeOutOfTemplateSpansAlone) {
  for (const char* folder : {"tiny-sp-bpe", "tiny-sp-unigram"}) {
    const auto tokenizer = opened(testing::golden_path(folder));
    ASSERT_NE(tokenizer, nullptr);
    const std::string text = "<s>Hello</s>";
    EXPECT_EQ(tokenizer->encode(text, {.add_special = false, .parse_special = true}).value(),
              tokenizer->encode(text, {.add_special = false, .parse_special = false}).value());
    const std::vector<TextSpan> spans = {{0, 3, false}, {3, 8, true}, {8, 12, false}};
    Ids expected = {1};
    for (const TokenId id : tokenizer->encode("Hello", {.add_special = false}).value()) expected.push_back(id);
    expected.push_back(2);
    EXPECT_EQ(tokenizer->encode_rendered(text, spans).value(), expected);
    const std::vector<TextSpan> data = {{0, 12, true}};
    for (const TokenId id : tokenizer->encode_rendered(text, data).value()) EXPECT_FALSE(tokenizer->is_special(id));
  }
}

TEST(SentencePiece, BytesThatAreNoCharacterAreOneReplacementEach) {
  const auto tokenizer = opened(testing::golden_path("tiny-sp-bpe"));
  ASSERT_NE(tokenizer, nullptr);
  const auto byte = [&](int value) { return *tokenizer->id_of(fmt::format("<0x{:02X}>", value)); };
  const Ids ids = {byte(0xE4), byte(0xBD), byte(0xE4), byte(0xBD), byte(0xA0), byte(0xFF), *tokenizer->id_of("a"),
                   1,          byte(0xF0), 0};
  const std::string expected = "\uFFFD\uFFFD\u4F60\uFFFDa\uFFFD \u2047 ";
  EXPECT_EQ(tokenizer->decode(ids, false), expected);
  Detokenizer detokenizer(*tokenizer, false);
  EXPECT_EQ(detokenizer.push(ids[0]), "");
  EXPECT_EQ(detokenizer.push(ids[1]), "");
  EXPECT_EQ(detokenizer.push(ids[2]), "\uFFFD\uFFFD");
}

// With a config beside it, a model is used as `tokenizers` uses it.
TEST(SentencePiece, FollowsItsConfig) {
  const TempFolder folder;
  folder.write("tokenizer.model", testing::read_golden("tiny-sp-bpe/tokenizer.model"));
  folder.write("tokenizer_config.json",
               R"({"add_bos_token": false, "add_eos_token": true, "eos_token": {"content": "<end>"},
      "added_tokens_decoder": {"800": {"content": "<end>", "special": true}, "1": {"content": "<s>", "special": true}}})");
  const auto tokenizer = opened(folder.path());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->vocabulary_size(), 801);
  const auto ids = tokenizer->encode("<s>Hello<tool><end>").value();
  ASSERT_GE(ids.size(), 5U);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(Ids(ids.end() - 3, ids.end()), (Ids{4, 800, 800}));
  EXPECT_EQ(tokenizer->decode(ids, true), "Hello<tool>");
  EXPECT_TRUE(tokenizer->is_special(800));
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "y"}}})");
  expect_error(Tokenizer::open(folder.path()), "added_tokens_decoder[\"x\"]");
  folder.write("tokenizer_config.json", "{");
  expect_error(Tokenizer::open(folder.path()), "tokenizer_config.json");
}

TEST(SentencePiece, BrokenFilesGiveOneError) {
  const std::string whole = testing::read_golden("tiny-sp-bpe/tokenizer.model");
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 40) {
    const auto made = Tokenizer::from_sentencepiece(whole.substr(0, size));
    if (!made) {
      EXPECT_FALSE(made.error().message.empty());
    }
  }
  expect_error(Tokenizer::from_sentencepiece(""), "holds no pieces");
  expect_error(Tokenizer::from_sentencepiece("\x0A"), "not a protocol buffer at byte 0");
  expect_error(Tokenizer::from_sentencepiece(std::string("\x0A\x05\x0A\x03"
                                                         "a\xFF"
                                                         "b",
                                                         7)),
               "piece 0 is not UTF-8");
  expect_error(Tokenizer::from_sentencepiece(std::string("\x0A\x03\x0A\x01"
                                                         "a",
                                                         5)),
               "0 unknown pieces");
  const std::string unknown(
      "\x0A\x05\x0A\x01"
      "u\x18\x02",
      7);
  expect_error(Tokenizer::from_sentencepiece(unknown + unknown), "is there twice");
  expect_error(Tokenizer::from_sentencepiece(unknown + std::string("\x12\x02\x18\x04", 4)), "model_type: 4");
  expect_error(Tokenizer::from_sentencepiece(unknown + std::string("\x1A\x03\x12\x01"
                                                                   "x",
                                                                   5)),
               "precompiled_charsmap");
}

// All single bytes, "ab" and "abc".
std::string small_ranks() {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (unsigned int byte = 0; byte < 256; ++byte) {
    text += fmt::format("{}{}== {}\n", kDigits[byte >> 2], kDigits[(byte & 3) << 4], byte);
  }
  return text + "YWI= 256\nYWJj 257\n";
}

constexpr std::string_view kTiktokenConfig =
    R"({"pat_str": "[a-z]+|[^a-z]", "bos_token": "<bos>", "add_bos_token": true,
    "added_tokens_decoder": {"258": {"content": "<bos>", "special": true}, "259": {"content": "<x>", "special": false}}})";

TEST(Tiktoken, TakesPatternAndSpecialsFromTheConfig) {
  const TempFolder folder;
  folder.write("small.tiktoken", small_ranks());
  expect_error(Tokenizer::open(folder.path()), "small.tiktoken: how its text is cut is not known");
  folder.write("tokenizer_config.json", R"({"pat_str": "[a-z]+|[^a-z]"})");
  expect_error(Tokenizer::open(folder.path()), "no added_tokens_decoder");
  folder.write("tokenizer_config.json", kTiktokenConfig);
  const auto tokenizer = opened(folder.path());
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(tokenizer->encode("abc<x>abab\xC3\xA9<bos>").value(), (Ids{258, 257, 259, 256, 256, 0xC3, 0xA9, 258}));
  EXPECT_EQ(tokenizer->decode(Ids{258, 257, 259, 0xC3, 0xA9}, true), "abc<x>\xC3\xA9");
  EXPECT_EQ(tokenizer->vocabulary_size(), 260);
  folder.write("tokenizer_config.json", R"({"pat_str": "(", "added_tokens_decoder": {"258": {"content": "<bos>"}}})");
  EXPECT_FALSE(error_of(Tokenizer::open(folder.path())).empty());
}

// Kimi's own code names the ids that its config does not.
TEST(Tiktoken, KnowsTokenizationCode) {
  const auto made = Tokenizer::from_tiktoken(
      small_ranks(), R"({"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]},
                         "added_tokens_decoder": {"259": {"content": "[BOS]", "special": true}}})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)->vocabulary_size(), 258 + 258);
  EXPECT_EQ((*made)->encode("[BOS]<|reserved_token_258|>").value(), (Ids{259, 258}));
}

TEST(Tiktoken, BrokenFilesGiveOneError) {
  const auto made = [](const std::string& text) { return Tokenizer::from_tiktoken(text, kTiktokenConfig); };
  expect_error(made(""), "holds no tokens");
  expect_error(made("YWI="), "line 1");
  expect_error(made("YWI= 0\n!!!! 1\n"), "line 2: the token is not base64");
  expect_error(made("YWI= x\n"), "line 1: the rank");
  expect_error(made("YWI= 99999999\n"), "line 1: the rank");
  expect_error(made("YWI= 0\n"), "byte 0x00 has no token");
  expect_error(made(small_ranks() + "YWI= 300\n"), "is there twice");
  expect_error(made(small_ranks() + "YWJk 257\n"), "rank 257 is there twice");
}

Json small_tekken() {
  Json root = Json::object();
  root["config"] = {{"pattern", "[a-z]+|[^a-z]"},
                    {"num_vocab_tokens", 258},
                    {"default_vocab_size", 270},
                    {"default_num_special_tokens", 12}};
  root["vocab"] = Json::array();
  std::istringstream lines(small_ranks());
  std::string token;
  for (int rank = 0; lines >> token >> rank;) root["vocab"].push_back({{"rank", rank}, {"token_bytes", token}});
  return root;
}

TEST(Tekken, PutsSpecialTokensFirst) {
  const auto tokenizer = Tokenizer::from_tekken(dump_json(small_tekken()));
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->encode("abc[INST]ab<SPECIAL_11>").value(), (Ids{1, 269, 3, 268, 11}));
  Json named = small_tekken();
  named["special_tokens"] = Json::array({{{"rank", 0}, {"token_str", "<u>"}}});
  const auto other = Tokenizer::from_tekken(dump_json(named));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ((*other)->encode("<u><SPECIAL_1>").value(), (Ids{0, 1}));
}

TEST(Tekken, BrokenFilesGiveOneError) {
  const auto without = [](const char* pointer) {
    Json root = small_tekken();
    const Json::json_pointer path(pointer);
    root.at(path.parent_pointer()).erase(path.back());
    return Tokenizer::from_tekken(dump_json(root));
  };
  expect_error(Tokenizer::from_tekken("[]"), "config: must be an object");
  expect_error(without("/config/pattern"), "config.pattern");
  expect_error(without("/config/default_vocab_size"), "config.default_vocab_size");
  expect_error(without("/vocab"), "vocab: must be a list");
  Json root = small_tekken();
  root["vocab"].erase(root["vocab"].size() - 1);
  expect_error(Tokenizer::from_tekken(dump_json(root)), "vocab: 257 tokens");
  root = small_tekken();
  root["vocab"][7].erase("token_bytes");
  expect_error(Tokenizer::from_tekken(dump_json(root)), "vocab[7]");
  root = small_tekken();
  root["config"]["default_num_special_tokens"] = 5;
  root["config"]["default_vocab_size"] = 260;
  expect_error(Tokenizer::from_tekken(dump_json(root)), "special_tokens: 10 of them");
}

TEST(VocabularyFiles, TheFileThatSaysMostIsTaken) {
  const TempFolder folder;
  expect_error(Tokenizer::open(folder.path()), "no tokenizer");
  EXPECT_EQ(Tokenizer::open(folder.path()).error().code, ErrorCode::kNotFound);
  expect_error(Tokenizer::open(folder.path() / "absent.json"), "absent.json");
  const auto size = [&] {
    const auto tokenizer = opened(folder.path());
    return tokenizer == nullptr ? -1 : tokenizer->vocabulary_size();
  };
  folder.write("a.gguf", testing::read_golden("tiny-gguf-bpe/vocab.gguf"));
  EXPECT_EQ(size(), opened(testing::golden_path("tiny-gguf-bpe/vocab.gguf"))->vocabulary_size());
  folder.write("tokenizer.model", testing::read_golden("tiny-sp-unigram/tokenizer.model"));
  EXPECT_EQ(size(), 700);
  folder.write("tekken.json", dump_json(small_tekken()));
  EXPECT_EQ(size(), 270);
  folder.write("tokenizer.json", testing::read_golden("tiny-bpe/tokenizer.json"));
  EXPECT_EQ(size(), opened(testing::golden_path("tiny-bpe/tokenizer.json"))->vocabulary_size());
  // Content counts, not the name: Llama 3's tokenizer.model is a tiktoken file.
  const TempFolder other;
  other.write("tokenizer.model", small_ranks());
  other.write("tokenizer_config.json", kTiktokenConfig);
  EXPECT_EQ(opened(other.path())->vocabulary_size(), 260);
}

// A token of Gemma 4 is ">\u2581</": there alone a mark does not begin a word.
TEST(VocabularyFiles, TextIsCutWhereNoTokenReachesOver) {
  const auto cut = make_token_border_split({{"\u2581ab", 0}, {"\u2581\u2581", 1}, {">\u2581</", 2}, {"b>", 3}});
  Pieces pieces;
  pieces.text = "\u2581ab\u2581\u2581ab>\u2581</ab\u4F60";
  pieces.ranges.push_back({0, pieces.text.size()});
  ASSERT_TRUE(cut->apply(pieces));
  std::vector<std::string> words;
  for (const auto range : pieces.ranges) words.emplace_back(pieces.view(range));
  EXPECT_EQ(words, (std::vector<std::string>{"\u2581ab", "\u2581\u2581ab>\u2581</", "ab", "\u4F60"}));
}

TEST(VocabularyFiles, EveryGgufPreTokenizerCompiles) {
  std::size_t named = 0;
  for (const char* name :
       {"default", "gpt-2",       "phi-2",          "mpt",         "olmo",   "smollm",           "starcoder",
        "refact",  "command-r",   "falcon",         "qwen2",       "qwen35", "deepseek-r1-qwen", "llama-bpe",
        "llama3",  "llama-v3",    "chatglm-bpe",    "glm4",        "tekken", "gpt-4o",           "minimax-m2",
        "kimi-k2", "deepseek-v3", "deepseek-coder", "deepseek-llm"}) {
    const GgufPreType* type = find_gguf_pre_type(name);
    ASSERT_NE(type, nullptr) << name;
    const auto made = type->make();
    ASSERT_TRUE(made) << name << ": " << made.error().message;
    Pieces pieces;
    pieces.text = "Hello  W\xC3\xB6rld 12345\n\t\xE4\xBD\xA0\xE5\xA5\xBD!? x";
    pieces.ranges.push_back({0, pieces.text.size()});
    ASSERT_TRUE((*made)->apply(pieces)) << name;
    std::size_t covered = 0;
    for (const auto& range : pieces.ranges) {
      EXPECT_EQ(range.begin, covered) << name;
      covered = range.end;
    }
    EXPECT_EQ(covered, pieces.text.size()) << name;
    ++named;
  }
  EXPECT_EQ(named, 25U);
  EXPECT_EQ(find_gguf_pre_type("whatever"), nullptr);
}

}  // namespace
}  // namespace octet::text
