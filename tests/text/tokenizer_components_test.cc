// The components of a tokenizer.json: random combinations against the reference, and the properties of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "octet/base/base64.h"
#include "octet/base/utf8.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/byte_trie.h"
#include "octet/text/tokenizer/decoder.h"
#include "octet/text/tokenizer/pre_tokenizer.h"
#include "octet/text/tokenizer/precompiled_charsmap.h"
#include "octet/text/tokenizer/unigram.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> load(const Json& json) {
  auto made = Tokenizer::from_json(json.dump());
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

Json tiny(const std::string& name) { return parse_json(testing::read_golden(name + "/tokenizer.json")).value(); }

std::string streamed(const Tokenizer& tokenizer, const Ids& ids, bool skip) {
  Detokenizer detokenizer(tokenizer, skip);
  std::string all;
  for (const TokenId id : ids) {
    const std::string delta = detokenizer.push(id);
    EXPECT_TRUE(is_valid_utf8(delta));
    all += delta;
  }
  return all + detokenizer.flush();
}

// ---- against the reference

std::unique_ptr<Tokenizer> combined(const Json& record) {
  Json json = tiny(record.at("base"));
  for (const auto& [key, value] : record.at("set").items()) {
    if (key == "model") {
      json[key].update(value);
    } else {
      json[key] = value;
    }
  }
  for (Json& token : json["added_tokens"]) token["normalized"] = false;
  return load(json);
}

TEST(Components, RandomCombinationsEqualTheReference) {
  std::size_t encoded = 0, decoded = 0;
  for (const Json& record : testing::read_jsonl("components/components.jsonl")) {
    SCOPED_TRACE(record.at("base").get<std::string>() + " " + record.at("set").dump().substr(0, 400));
    const auto tokenizer = combined(record);
    for (const Json& item : record.at("encode")) {
      const auto ids = tokenizer->encode(item[0].get<std::string>(), {.add_special = false});
      ASSERT_TRUE(ids) << ids.error().message;
      EXPECT_EQ(*ids, item[1].get<Ids>()) << item[0];
      ++encoded;
    }
    for (const Json& item : record.at("decode")) {
      const auto ids = item[0].get<Ids>();
      const std::string text = item[2];
      EXPECT_EQ(tokenizer->decode(ids, item[1].get<bool>()), text) << item[0];
      const std::string stream = streamed(*tokenizer, ids, item[1].get<bool>());
      // Only runs of byte tokens that are not UTF-8 may differ.
      if (text.find("\uFFFD") == std::string::npos) {
        EXPECT_EQ(stream, text) << item[0];
      }
      ++decoded;
    }
  }
  EXPECT_GT(encoded, 1300U);
  EXPECT_GT(decoded, 900U);
}

// ---- decoders as streams

std::string run_decoder(const Decoder& decoder, const std::vector<std::string>& tokens) {
  std::string out;
  DecoderRun run = decoder.start(DecodeMode::kStream);
  for (const std::string& token : tokens) run.push(token, out);
  run.finish(out);
  return out;
}

std::vector<std::string> deltas(const Decoder& decoder, const std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  DecoderRun run = decoder.start(DecodeMode::kStream);
  for (const std::string& token : tokens) run.push(token, out.emplace_back());
  run.finish(out.emplace_back());
  return out;
}

std::unique_ptr<Decoder> fused(std::unique_ptr<Decoder> after) {
  std::vector<std::unique_ptr<Decoder>> parts;
  parts.push_back(make_fuse_decoder());
  parts.push_back(std::move(after));
  return make_decoder_sequence(std::move(parts));
}

TEST(Decoders, TextComesOutAsSoonAsItIsCertain) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(deltas(*fused(make_replace_decoder("aab", "x")), {"a", "a", "a", "b", "a"}),
            (Texts{"", "", "a", "x", "", "a"}));
  EXPECT_EQ(deltas(*fused(make_strip_decoder(' ', 1, 2)), {" ", " ", "a ", " ", " b", " "}),
            (Texts{"", "", " a", "", "   b", "", ""}));
  EXPECT_EQ(deltas(*make_strip_decoder('a', 1, 1), {"aa", "aba", "a"}), (Texts{"", "b", "", ""}));
  EXPECT_EQ(deltas(*make_byte_fallback_decoder(), {"<0x41>", "<0xE4>", "<0xBD", ">"}),
            (Texts{"A", "", "\uFFFD<0xBD", ">", ""}));
}

TEST(Decoders, ReplaceFindsTheSameAcrossTokensAsInTheWhole) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string pattern, whole;
    std::vector<std::string> tokens;
    for (std::size_t i = 1 + random() % 4; i > 0; --i) pattern += static_cast<char>('a' + random() % 2);
    for (std::size_t i = random() % 12; i > 0; --i) {
      std::string& token = tokens.emplace_back();
      for (std::size_t k = random() % 3; k > 0; --k) token += static_cast<char>('a' + random() % 2);
      whole += token;
    }
    std::string expected;
    for (std::size_t at = 0; at < whole.size();) {
      const bool match = whole.compare(at, pattern.size(), pattern) == 0;
      expected += match ? '-' : whole[at];
      at += match ? pattern.size() : 1;
    }
    ASSERT_EQ(run_decoder(*fused(make_replace_decoder(pattern, "-")), tokens), expected) << pattern << " in " << whole;
  }
}

// ---- unigram

// The definition: the best score of all ways to cut the text. A character is unknown where it is no piece by itself.
double best_score(const UnigramConfig& config, double unknown, std::string_view text) {
  if (text.empty()) return 0;
  double best = -std::numeric_limits<double>::infinity();
  bool single = false;
  for (std::size_t id = 1; id < config.pieces.size(); ++id) {
    const std::string& piece = config.pieces[id].text;
    if (!text.starts_with(piece)) continue;
    single |= piece.size() == 1;
    best = std::max(best, config.pieces[id].score + best_score(config, unknown, text.substr(piece.size())));
  }
  return single ? best : std::max(best, unknown + best_score(config, unknown, text.substr(1)));
}

// The score of a path that spells the text; 0 stands for a run of unknown characters.
double score_of(const UnigramConfig& config, double unknown, std::string_view text, const Ids& ids) {
  double score = 0;
  std::size_t covered = 0;
  std::string spelled;
  for (const TokenId id : ids) {
    const UnigramPiece& piece = config.pieces[static_cast<std::size_t>(id)];
    spelled += id == 0 ? "" : piece.text;
    covered += id == 0 ? 0 : piece.text.size();
    score += piece.score;
  }
  if (covered == text.size()) {
    EXPECT_EQ(spelled, text);
  }
  return score + unknown * static_cast<double>(text.size() - covered);
}

Ids encode_word(const Unigram& model, const std::string& text) {
  Pieces pieces;
  pieces.text = text;
  pieces.ranges = {{0, text.size()}};
  Ids ids;
  EXPECT_TRUE(model.encode(pieces, ids));
  return ids;
}

TEST(Unigram, FindsTheBestOfAllPaths) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    UnigramConfig config{.pieces = {{"<unk>", 0}}, .unknown = 0};
    for (int i = 0; i < 12; ++i) {
      std::string text;
      for (std::size_t k = 1 + random() % 4; k > 0; --k) text += static_cast<char>('a' + random() % 3);
      const auto same = [&](const UnigramPiece& piece) { return piece.text == text; };
      if (std::ranges::any_of(config.pieces, same)) continue;
      config.pieces.push_back({text, -1 - static_cast<double>(random()) / 4e8});
    }
    const double lowest = std::ranges::min_element(config.pieces, {}, &UnigramPiece::score)->score;
    const auto model = Unigram::make(config).value();
    for (int i = 0; i < 10; ++i) {
      std::string text;
      for (int k = 0; k < 9; ++k) text += static_cast<char>('a' + random() % 3);
      const Ids ids = encode_word(*model, text);
      ASSERT_NEAR(score_of(config, lowest - 10, text, ids), best_score(config, lowest - 10, text), 1e-9) << text;
    }
  }
}

TEST(Unigram, UnknownCharactersAndBytes) {
  UnigramConfig config{.pieces = {{"<unk>", 0}, {"a", -1}, {"<0x62>", 0}}, .unknown = 0};
  EXPECT_EQ(encode_word(*Unigram::make(config).value(), "abba"), (Ids{1, 0, 1}));
  config.byte_fallback = true;
  EXPECT_EQ(encode_word(*Unigram::make(config).value(), "abba"), (Ids{1, 2, 2, 1}));
  // All bytes of the run, or none.
  EXPECT_EQ(encode_word(*Unigram::make(config).value(), "abca"), (Ids{1, 0, 1}));
  config.unknown.reset();
  Pieces pieces;
  pieces.text = "b";
  pieces.ranges = {{0, 1}};
  Ids ids;
  EXPECT_FALSE(Unigram::make(config).value()->encode(pieces, ids));
  config.unknown = 3;
  EXPECT_FALSE(Unigram::make(config));
  EXPECT_FALSE(Unigram::make({}));
}

TEST(Unigram, PiecesOutOfTextAreNeverFound) {
  UnigramConfig config{.pieces = {{"<unk>", 0}, {"a", -1}, {"aa", -1, false}}, .unknown = 0};
  EXPECT_EQ(encode_word(*Unigram::make(config).value(), "aa"), (Ids{1, 1}));
  config.pieces[2].in_text = true;
  EXPECT_EQ(encode_word(*Unigram::make(config).value(), "aa"), Ids{2});
}

TEST(ByteTrie, HoldsWhatASetHolds) {
  std::mt19937 random(3);
  for (const int count : {0, 1, 30, 3000}) {
    std::map<std::string, std::int32_t> strings;
    for (int i = 0; i < count; ++i) {
      std::string text;
      for (std::size_t k = 1 + random() % 6; k > 0; --k) text += static_cast<char>(random() % (k % 2 == 0 ? 256 : 5));
      strings[text] = i;
    }
    const ByteTrie trie({strings.begin(), strings.end()});
    const auto find = [&](const std::string& text) {
      ByteTrie::Node node = ByteTrie::kRoot;
      for (const char byte : text) {
        node = trie.step(node, static_cast<std::uint8_t>(byte));
        if (node == ByteTrie::kNone) return -1;
      }
      return trie.value(node);
    };
    for (const auto& [text, value] : strings) {
      ASSERT_EQ(find(text), value);
      for (int byte = 0; byte < 256; ++byte) {
        const std::string longer = text + static_cast<char>(byte);
        ASSERT_EQ(find(longer), strings.contains(longer) ? strings[longer] : -1);
      }
    }
  }
}

// ---- charsmaps

std::string golden_charsmap() {
  for (const Json& record : testing::read_jsonl("components/components.jsonl")) {
    const Json& normalizer = record["set"]["normalizer"];
    if (normalizer.is_object() && normalizer.contains("precompiled_charsmap")) {
      return decode_base64(normalizer["precompiled_charsmap"].get<std::string>()).value();
    }
  }
  ADD_FAILURE() << "no charsmap";
  return {};
}

TEST(PrecompiledCharsmap, FindsTheLongestAndTheShortestKey) {
  const auto map = PrecompiledCharsmap::parse(golden_charsmap()).value();
  EXPECT_EQ(map.longest("ＡＢC")->replacement, "x");
  EXPECT_EQ(map.longest("ＡＢC")->length, 6U);
  EXPECT_EQ(map.shortest("ＡＢC")->replacement, "A");
  EXPECT_EQ(map.longest("\r\n")->length, 2U);
  EXPECT_EQ(map.longest("\u200B")->replacement, "");
  EXPECT_FALSE(map.longest("q"));
  EXPECT_FALSE(map.longest(""));
}

TEST(PrecompiledCharsmap, BrokenBytesAreRefusedOrHarmless) {
  const std::string good = golden_charsmap();
  EXPECT_FALSE(PrecompiledCharsmap::parse(""));
  EXPECT_FALSE(PrecompiledCharsmap::parse(good.substr(0, 100)));
  EXPECT_FALSE(PrecompiledCharsmap::parse(std::string(4, '\0')));
  std::mt19937 random(2);
  std::size_t found = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 20; ++i) bytes[4 + random() % (bytes.size() - 4)] = static_cast<char>(random());
    const auto map = PrecompiledCharsmap::parse(bytes);
    if (!map) continue;
    for (const std::string text : {"ＡＢ", "日本", "ｶﾞ", "\r\n", "é", "abc"}) {
      const auto match = map->longest(text);
      if (!match) continue;
      ++found;
      ASSERT_LE(match->length, text.size());
      ASSERT_TRUE(is_valid_utf8(match->replacement));
    }
  }
  EXPECT_GT(found, 0U);
}

TEST(Base64, DecodesAndRefuses) {
  EXPECT_EQ(decode_base64("AP+Abw=="), std::string("\0\xFF\x80o", 4));
  EXPECT_EQ(decode_base64("AP+Abw"), std::string("\0\xFF\x80o", 4));
  EXPECT_EQ(decode_base64(""), "");
  for (const char* bad : {"A", "AP+Abx==", "AP=A", "AP-A", "A===", "===="}) EXPECT_FALSE(decode_base64(bad)) << bad;
}

// ---- long input

// One word of a million characters, and a million marks: through every kind of model and back.
TEST(Components, LongTextComesBack) {
  std::mt19937 random(6);
  std::string word, marks(1'000'000, ' ');
  for (int i = 0; i < 1'000'000; ++i) word += static_cast<char>('a' + random() % 26);
  for (const char* name : {"tiny-gemma", "tiny-metaspace", "tiny-unigram"}) {
    Json json = tiny(name);
    if (name == std::string("tiny-unigram")) json["normalizer"] = nullptr;  // which folds spaces
    const auto tokenizer = load(json);
    for (const std::string& text : {word, marks}) {
      const auto ids = tokenizer->encode(text, {.add_special = false});
      ASSERT_TRUE(ids) << ids.error().message;
      // Decoders take the mark in front away, whether it was put there or not.
      const std::size_t lost = text == marks && name != std::string("tiny-gemma") ? 1 : 0;
      EXPECT_EQ(tokenizer->decode(*ids) == text.substr(lost), true) << name;
    }
  }
}

// ---- what is refused

TEST(Components, EveryFaultNamesItsPath) {
  const auto says = [](const char* key, const Json& value, const std::string& what) {
    Json json = tiny("tiny-spm");
    json[key] = value;
    const auto made = Tokenizer::from_json(json.dump());
    ASSERT_FALSE(made) << what;
    EXPECT_NE(made.error().message.find(what), std::string::npos) << made.error().message;
  };
  says("normalizer", {{"type", "Replace"}, {"content", "x"}}, "normalizer.pattern: must be an object");
  says("normalizer", {{"type", "Replace"}, {"content", "x"}, {"pattern", {{"Regex", "("}}}},
       "normalizer.pattern: regex");
  says("normalizer", {{"type", "Prepend"}}, "normalizer.prepend: must be a string");
  says("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}},
       "normalizer.precompiled_charsmap: is not base64");
  says("normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}},
       "normalizer.precompiled_charsmap: 3 bytes");
  says("normalizer", {{"type", "Sequence"}, {"normalizers", {{{"type", "Other"}}}}},
       "normalizer.normalizers[0].type: \"Other\"");
  says("pre_tokenizer", {{"type", "Metaspace"}}, "pre_tokenizer.replacement");
  says("pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}},
       "pre_tokenizer.replacement: must be one character");
  says("pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}},
       "pre_tokenizer.prepend_scheme: \"last\"");
  says("pre_tokenizer",
       {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}, {"add_prefix_space", false}},
       "pre_tokenizer.prepend_scheme: \"first\" contradicts");
  says("pre_tokenizer", {{"type", "FixedLength"}, {"length", 0}}, "pre_tokenizer.length");
  says("pre_tokenizer", {{"type", "Punctuation"}, {"behavior", "Other"}}, "pre_tokenizer.behavior: \"Other\"");
  says("decoder", {{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}}, "decoder.start");
  says("decoder", {{"type", "Sequence"}, {"decoders", {{{"type", "CTC"}}}}}, "decoder.decoders[0].type: \"CTC\"");
  says("post_processor", {{"type", "RobertaProcessing"}, {"cls", {"<s>", 1}}}, "post_processor.sep");
  says("model", {{"type", "Unigram"}, {"vocab", {{"a"}}}}, "model.vocab[0]");
  says("model", {{"type", "Unigram"}, {"vocab", Json::array({Json::array({"a", -1.0})})}, {"unk_id", 4}},
       "model.vocab: the unknown id 4");
}

TEST(Components, EdgesOfRobertaAreItsClsAndSep) {
  Json json = tiny("tiny-spm");
  json["post_processor"] = {{"type", "RobertaProcessing"}, {"cls", {"<s>", 1}}, {"sep", {"</s>", 2}}};
  const auto tokenizer = load(json);
  const Ids plain = tokenizer->encode("hello", {.add_special = false}).value();
  Ids around = {1};
  around.insert(around.end(), plain.begin(), plain.end());
  around.push_back(2);
  EXPECT_EQ(tokenizer->encode("hello").value(), around);
}

}  // namespace
}  // namespace octet::text
