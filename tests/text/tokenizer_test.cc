#include "octet/text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "octet/base/utf8.h"
#include "octet/text/tokenizer/bpe.h"
#include "octet/text/tokenizer/byte_alphabet.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

using Ids = std::vector<TokenId>;

Json tiny_json() { return parse_json(testing::read_golden("tiny-bpe/tokenizer.json")).value(); }

std::unique_ptr<Tokenizer> load(const Json& json) {
  auto made = Tokenizer::from_json(json.dump());
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

std::string load_error(const Json& json) {
  auto made = Tokenizer::from_json(json.dump());
  return made ? "loaded" : made.error().message;
}

// ---- TOK-03: rendered prompts

// Text in brackets is data.
struct Prompt {
  explicit Prompt(const std::string& marked) {
    bool is_data = false;
    for (const char c : marked + "]") {
      if (c != '[' && c != ']') {
        text += c;
        continue;
      }
      const std::size_t begin = spans.empty() ? 0 : spans.back().end;
      if (begin != text.size()) spans.push_back({begin, text.size(), is_data});
      is_data = c == '[';
    }
  }
  std::string text;
  std::vector<TextSpan> spans;
};

class RenderedPrompt : public ::testing::Test {
 protected:
  Ids rendered(const std::string& marked) {
    const Prompt prompt(marked);
    return tokenizer_->encode_rendered(prompt.text, prompt.spans).value();
  }
  Ids plain(const std::string& text) {
    return tokenizer_->encode(text, {.add_special = false, .parse_special = false}).value();
  }
  Ids join(std::vector<Ids> parts) {
    Ids all;
    for (const Ids& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  std::unique_ptr<Tokenizer> tokenizer_ = load(tiny_json());
  TokenId user_ = tokenizer_->id_of("<|user|>").value(), eos_ = tokenizer_->id_of("<|eos|>").value();
};

TEST_F(RenderedPrompt, MarkersOfTheTemplateAreTokensAndThoseOfTheUserAreText) {
  EXPECT_EQ(rendered("<|user|>[hi]<|eos|>"), join({{user_}, plain("hi"), {eos_}}));
  EXPECT_EQ(rendered("<|user|>[hi<|eos|>]<|eos|>"), join({{user_}, plain("hi<|eos|>"), {eos_}}));
}

TEST_F(RenderedPrompt, DataCannotCompleteOrSwallowAMarker) {
  EXPECT_EQ(rendered("<|us[er|>]"), plain("<|user|>"));
  EXPECT_EQ(rendered("[<]|user|>"), plain("<|user|>"));
  EXPECT_EQ(rendered("[<|us]<|user|>"), join({plain("<|us"), {user_}}));
}

TEST_F(RenderedPrompt, TextBetweenMarkersIsEncodedAsOneString) {
  EXPECT_EQ(rendered("<|user|>the [stre]am<|eos|>"), join({{user_}, plain("the stream"), {eos_}}));
}

TEST_F(RenderedPrompt, AddedTokensThatAreNotSpecialAreParsedEverywhere) {
  const TokenId tool = tokenizer_->id_of("<tool>").value();
  EXPECT_EQ(rendered("<tool>[<tool>]"), (Ids{tool, tool}));
}

TEST_F(RenderedPrompt, SpansMustCoverTheText) {
  const std::vector<TextSpan> gap = {{0, 1, false}, {2, 3, false}}, tail = {{0, 1, false}};
  EXPECT_FALSE(tokenizer_->encode_rendered("abc", gap));
  EXPECT_FALSE(tokenizer_->encode_rendered("abc", tail));
  EXPECT_TRUE(tokenizer_->encode_rendered("", {}));
}

// ---- byte-pair encoding

// The definition: again and again, merge the leftmost pair of lowest rank.
Ids merged_by_definition(const BpeConfig& config, const std::string& word) {
  std::vector<std::string> parts;
  for (const char c : word) parts.emplace_back(1, c);
  for (;;) {
    std::size_t best_rank = config.merges.size(), best = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = std::ranges::find(config.merges, std::pair(parts[i], parts[i + 1]));
      const auto rank = static_cast<std::size_t>(found - config.merges.begin());
      if (rank < best_rank) best_rank = rank, best = i;
    }
    if (best_rank == config.merges.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) {
    ids.push_back(std::ranges::find(config.vocabulary, part, &std::pair<std::string, TokenId>::first)->second);
  }
  return ids;
}

// A random vocabulary over few letters, so that merges overlap in every way.
BpeConfig random_config(std::mt19937& random) {
  BpeConfig config;
  std::vector<std::string> tokens = {"a", "b", "c"};
  const auto known = [&](const std::string& token) { return std::ranges::find(tokens, token) != tokens.end(); };
  while (config.merges.size() < 25) {
    const std::string left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
    if (std::ranges::find(config.merges, std::pair(left, right)) != config.merges.end()) continue;
    if (!known(left + right)) tokens.push_back(left + right);
    config.merges.emplace_back(left, right);
  }
  std::ranges::shuffle(config.merges, random);
  for (std::size_t i = 0; i < tokens.size(); ++i) config.vocabulary.emplace_back(tokens[i], static_cast<TokenId>(i));
  return config;
}

TEST(Bpe, MergesAsDefinedForShortAndLongWords) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const BpeConfig config = random_config(random);
    const auto bpe = Bpe::make(config).value();
    for (const std::size_t length : {1U, 2U, 7U, 47U, 127U, 128U, 129U, 130U, 200U}) {
      Pieces pieces;
      for (std::size_t i = 0; i < length; ++i) pieces.text += static_cast<char>('a' + random() % 3);
      pieces.ranges = {{0, length}};
      Ids ids;
      ASSERT_TRUE(bpe->encode(pieces, ids));
      ASSERT_EQ(ids, merged_by_definition(config, pieces.text)) << pieces.text;
    }
  }
}

// Tokens that hold, begin and end inside characters of every length, so that merges reach over borders in every way.
TEST(Bpe, MergesBytesAsDefinedOverBordersOfCharacters) {
  const std::vector<std::string> characters{"a", "\u00E9", "\u4E2D", "\u6587", "\u4E2E", "\U0001F680", "\uFFFD"};
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    BpeConfig config;
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    while (tokens.size() < 256 + 30) {
      // Two neighbours that some text has.
      std::string text;
      for (int i = 0; i < 3; ++i) text += characters[random() % characters.size()];
      const std::size_t begin = random() % text.size(), length = 2 + random() % 5;
      const std::string token = text.substr(begin, length);
      const std::size_t cut = 1 + random() % std::max<std::size_t>(1, token.size() - 1);
      if (token.size() < 2 || std::ranges::find(tokens, token) != tokens.end()) continue;
      const std::string left = token.substr(0, cut), right = token.substr(cut);
      if (std::ranges::find(tokens, left) == tokens.end() || std::ranges::find(tokens, right) == tokens.end()) continue;
      tokens.push_back(token);
      config.merges.emplace_back(left, right);
    }
    std::ranges::shuffle(config.merges, random);
    for (std::size_t i = 0; i < tokens.size(); ++i) config.vocabulary.emplace_back(tokens[i], static_cast<TokenId>(i));
    BpeConfig spelled;
    for (const auto& [token, id] : config.vocabulary) spelled.vocabulary.emplace_back(spell_bytes(token), id);
    for (const auto& [left, right] : config.merges) spelled.merges.emplace_back(spell_bytes(left), spell_bytes(right));
    const auto bpe = Bpe::make(spelled).value();
    for (int i = 0; i < 20; ++i) {
      Pieces pieces{.text = {}, .ranges = {}, .is_bytes = true};
      for (std::size_t length = 1 + random() % 20; length > 0; --length) {
        pieces.text += characters[random() % characters.size()];
      }
      pieces.ranges = {{0, pieces.text.size()}};
      Ids ids;
      ASSERT_TRUE(bpe->encode(pieces, ids));
      ASSERT_EQ(ids, merged_by_definition(config, pieces.text)) << ::testing::PrintToString(pieces.text);
    }
  }
}

TEST(Bpe, UnknownCharactersBecomeTheUnknownTokenOrNothing) {
  BpeConfig config{.vocabulary = {{"a", 0}, {"?", 1}}};
  Pieces pieces;
  pieces.text = "axya";
  pieces.ranges = {{0, 4}};
  const auto encoded = [&] {
    Ids ids;
    EXPECT_TRUE(Bpe::make(config).value()->encode(pieces, ids));
    return ids;
  };
  EXPECT_EQ(encoded(), (Ids{0, 0}));
  config.unknown = "?";
  EXPECT_EQ(encoded(), (Ids{0, 1, 1, 0}));
  config.fuse_unknown = true;
  EXPECT_EQ(encoded(), (Ids{0, 1, 0}));
  config.unknown = "!";
  EXPECT_FALSE(Bpe::make(config));
}

TEST(Bpe, ByteFallbackStandsForCharactersWithAllTheirBytes) {
  BpeConfig config{.vocabulary = {{"a", 0}, {"?", 1}, {"<0xC3>", 2}, {"<0xA9>", 3}, {"<0x62>", 4}},
                   .unknown = "?",
                   .fuse_unknown = true,
                   .byte_fallback = true};
  const auto bpe = Bpe::make(config).value();
  const auto encoded = [&](std::string text) {
    Pieces pieces{.text = std::move(text)};
    pieces.ranges = {{0, pieces.text.size()}};
    Ids ids;
    EXPECT_TRUE(bpe->encode(pieces, ids));
    return ids;
  };
  EXPECT_EQ(encoded("a\u00E9ba"), (Ids{0, 2, 3, 4, 0}));
  EXPECT_EQ(encoded("\u00E8\u00E8a"), (Ids{1, 0}));
  // The reference puts a pending unknown token behind the bytes.
  EXPECT_EQ(encoded("\u00E8b\u00E8a"), (Ids{4, 1, 0}));
}

TEST(Tokenizer, AWordOfAMillionCharactersComesBack) {
  const auto tokenizer = load(tiny_json());
  std::string word;
  std::mt19937 random(3);
  for (int i = 0; i < 1'000'000; ++i) word += static_cast<char>('a' + random() % 26);
  const auto ids = tokenizer->encode(word, {.add_special = false});
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(tokenizer->decode(*ids), word);
}

// ---- edges

TEST(Tokenizer, BytesThatAreNotUtf8AreRefused) {
  const auto tokenizer = octet::testing::make_byte_tokenizer();
  EXPECT_FALSE(tokenizer->encode("a\xFF"));
  EXPECT_FALSE(tokenizer->encode("\xED\xA0\x80"));
}

TEST(Tokenizer, IdsOutsideTheVocabularyGiveNothing) {
  const auto tokenizer = octet::testing::make_byte_tokenizer();
  const Ids ids = {-1, 'h', 1'000'000, 'i', std::numeric_limits<TokenId>::max(), std::numeric_limits<TokenId>::min()};
  EXPECT_EQ(tokenizer->decode(ids), "hi");
  EXPECT_FALSE(tokenizer->token(-1));
  EXPECT_FALSE(tokenizer->token(257));
  EXPECT_EQ(tokenizer->vocabulary_size(), 257);
  EXPECT_EQ(tokenizer->token(32), "\u0120");
  EXPECT_TRUE(tokenizer->is_special(octet::testing::kByteEos));
  EXPECT_FALSE(tokenizer->is_special(-5));
}

TEST(Tokenizer, StreamsEqualTheWholeForRandomIds) {
  const auto tokenizer = load(tiny_json());
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Ids ids;
    for (int i = 0; i < 30; ++i) ids.push_back(static_cast<TokenId>(random() % 1020));
    for (const bool skip : {false, true}) {
      Detokenizer detokenizer(*tokenizer, skip);
      std::string all;
      for (const TokenId id : ids) {
        const std::string delta = detokenizer.push(id);
        ASSERT_TRUE(is_valid_utf8(delta));
        all += delta;
      }
      ASSERT_EQ(all + detokenizer.flush(), tokenizer->decode(ids, skip));
    }
  }
}

TEST(Tokenizer, APatternWithoutEndIsAnErrorOfThatText) {
  Json json = tiny_json();
  json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "((a+)+)+$";
  const auto tokenizer = load(json);
  const auto got = tokenizer->encode(std::string(5000, 'a') + "!");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kExhausted);
  EXPECT_TRUE(tokenizer->encode("aaa"));
}

TEST(Tokenizer, UnsupportedPartsAreRefusedByName) {
  const auto with = [](const char* key, Json value) {
    Json json = tiny_json();
    json[key] = std::move(value);
    return load_error(json);
  };
  const auto with_model = [](const char* key, Json value) {
    Json json = tiny_json();
    json["model"][key] = std::move(value);
    return load_error(json);
  };
  const auto says = [](const std::string& error, const std::string& what) {
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  says(with("normalizer", {{"type", "BertNormalizer"}}), "normalizer.type: \"BertNormalizer\"");
  says(with("pre_tokenizer", {{"type", "UnicodeScripts"}}), "pre_tokenizer.type: \"UnicodeScripts\"");
  says(with("post_processor", {{"type", "Other"}}), "post_processor.type: \"Other\"");
  says(with("decoder", {{"type", "WordPiece"}}), "decoder.type: \"WordPiece\"");
  says(with_model("type", "WordPiece"), "model.type: \"WordPiece\"");
  says(with_model("dropout", 0.1), "model.dropout");
  says(with_model("end_of_word_suffix", "</w>"), "model.end_of_word_suffix");
}

TEST(ByteAlphabet, SpellsEveryByteAndBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  const std::string spelled = spell_bytes(bytes);
  EXPECT_TRUE(is_valid_utf8(spelled));
  EXPECT_EQ(unspell_bytes(spelled), bytes);
  EXPECT_EQ(spell_bytes(" \n"), "\u0120\u010A");
  EXPECT_FALSE(unspell_bytes("a b"));
}

}  // namespace
}  // namespace octet::text
