// The vocabulary of a GGUF file. tokenizer.ggml.pre names the pre-tokenizer; what each name means is that of the
// published model.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "octet/base/log.h"
#include "octet/formats/gguf.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/bpe.h"
#include "octet/text/tokenizer/pipeline.h"

namespace octet::text {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens", kTypes = "tokenizer.ggml.token_type",
                           kMerges = "tokenizer.ggml.merges", kModel = "tokenizer.ggml.model",
                           kPre = "tokenizer.ggml.pre";
constexpr std::int64_t kControl = 3, kUserDefined = 4;  // token types

constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// How the text is cut under one name of tokenizer.ggml.pre.
struct PreType {
  std::string_view name;
  std::string_view regex;      // empty: ByteLevel's own
  bool single_digits = false;  // digits are cut one by one first
  bool nfc = false;
  bool whole_words = false;  // ignore_merges
  bool bos = false;          // add_bos_token where the file does not say
};

constexpr auto kPreTypes = std::to_array<PreType>({
    {.name = "gpt-2"},
    {.name = "default"},
    {.name = "smollm", .single_digits = true},
    {.name = "starcoder", .single_digits = true},
    {.name = "refact", .single_digits = true},
    {.name = "command-r", .single_digits = true, .nfc = true},
    {.name = "qwen2", .regex = kQwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .regex = kQwen2, .nfc = true},
    {.name = "qwen35", .regex = kQwen35, .nfc = true},
    {.name = "llama-bpe", .regex = kLlama3, .whole_words = true, .bos = true},
    {.name = "tekken", .regex = kTekken, .whole_words = true},
});

template <typename T>
Result<std::optional<T>> optional_value(Result<T> value) {
  if (value) return std::optional<T>(*std::move(value));
  if (value.error().code == ErrorCode::kNotFound) return std::optional<T>();
  return std::unexpected(std::move(value).error());
}

Result<const PreType*> read_pre_type(const formats::GgufFile& file) {
  OCTET_TRY(const auto name, optional_value(file.string(kPre)));
  const auto found = std::ranges::find(kPreTypes, name ? std::string_view(*name) : "default", &PreType::name);
  if (found == kPreTypes.end()) {
    return fail(ErrorCode::kUnsupported, "{}: {}: pre-tokenizer \"{}\" is not supported", file.where(), kPre, *name);
  }
  return &*found;
}

Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer_of(const PreType& type) {
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  if (type.single_digits) parts.push_back(make_digits(true));
  if (!type.regex.empty()) {
    OCTET_TRY(auto split, make_split(type.regex, SplitBehavior::kIsolated));
    parts.push_back(std::move(split));
  }
  OCTET_TRY(auto bytes, make_byte_level(false, type.regex.empty()));
  parts.push_back(std::move(bytes));
  return make_sequence(std::move(parts));
}

Result<std::vector<std::pair<std::string, std::string>>> read_merges(const formats::GgufFile& file) {
  OCTET_TRY(const auto lines, file.strings(kMerges));
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(lines.size());
  for (const std::string_view line : lines) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos) {
      return fail(ErrorCode::kInvalid, "{}: {}: merge {} (\"{}\") has no space", file.where(), kMerges, merges.size(),
                  line.substr(0, 100));
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

// Names of the form [PAD123] only fill the table up to the width of the embedding.
bool is_padding(std::string_view token) {
  if (!token.starts_with("[PAD") || !token.ends_with(']') || token.size() < 6) return false;
  return std::ranges::all_of(token.substr(4, token.size() - 5), [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::vector<AddedToken>> read_added(const formats::GgufFile& file, const std::vector<std::string_view>& tokens) {
  std::vector<AddedToken> added;
  OCTET_TRY(const auto types, optional_value(file.integers(kTypes)));
  if (!types) return added;
  if (types->size() != tokens.size()) {
    return fail(ErrorCode::kInvalid, "{}: {}: {} types for {} tokens", file.where(), kTypes, types->size(),
                tokens.size());
  }
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::int64_t type = (*types)[id];
    if ((type != kControl && type != kUserDefined) || tokens[id].empty() || is_padding(tokens[id])) continue;
    added.push_back({.content = std::string(tokens[id]),
                     .id = static_cast<TokenId>(id),
                     .normalized = false,
                     .special = type == kControl});
  }
  return added;
}

// The id under `key` if the file asks for it to be added; one outside the vocabulary is ignored.
Result<std::vector<TokenId>> edge_token(const formats::GgufFile& file, std::string_view flag, std::string_view key,
                                        bool fallback, std::size_t tokens) {
  OCTET_TRY(const auto wanted, optional_value(file.boolean(flag)));
  if (!wanted.value_or(fallback)) return std::vector<TokenId>{};
  OCTET_TRY(const auto id, optional_value(file.integer(key)));
  if (!id) return std::vector<TokenId>{};
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= tokens) {
    log_warning("{}: {} is {}, but there are {} tokens: ignored", file.where(), key, *id, tokens);
    return std::vector<TokenId>{};
  }
  return std::vector<TokenId>{static_cast<TokenId>(*id)};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const formats::GgufFile& file) {
  OCTET_TRY(const std::string model, file.string(kModel));
  if (model != "gpt2") {
    return fail(ErrorCode::kUnsupported, "{}: {}: tokenizer \"{}\" is not supported", file.where(), kModel, model);
  }
  OCTET_TRY(const PreType* const type, read_pre_type(file));
  OCTET_TRY(const auto tokens, file.strings(kTokens));
  if (tokens.empty()) return fail(ErrorCode::kInvalid, "{}: {}: is empty", file.where(), kTokens);
  BpeConfig config;
  config.vocabulary.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    config.vocabulary.emplace_back(tokens[id], static_cast<TokenId>(id));
  }
  OCTET_TRY(config.merges, read_merges(file));
  config.ignore_merges = type->whole_words;
  config.skip_unknown_merges = true;
  auto bpe = Bpe::make(config);
  if (!bpe) return within(file.where(), std::move(bpe).error());
  OCTET_TRY(std::vector<AddedToken> added, read_added(file, tokens));
  auto vocabulary = Vocabulary::make(std::move(config.vocabulary));
  if (!vocabulary) return within(file.where(), std::move(vocabulary).error());
  std::unique_ptr<Normalizer> normalizer;
  if (type->nfc) normalizer = make_nfc_normalizer();
  OCTET_TRY(auto pre_tokenizer, make_pre_tokenizer_of(*type));
  OCTET_TRY(auto before,
            edge_token(file, "tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", type->bos, tokens.size()));
  OCTET_TRY(auto after,
            edge_token(file, "tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false, tokens.size()));
  OCTET_TRY(AddedTokens added_tokens, AddedTokens::make(std::move(added), normalizer.get()));
  return std::make_unique<Pipeline>(
      PipelineParts{*std::move(vocabulary), std::move(added_tokens), std::move(normalizer), std::move(pre_tokenizer),
                    *std::move(bpe), PostProcessor(std::move(before), std::move(after)), make_byte_level_decoder()});
}

}  // namespace octet::text
