#include "octet/text/tokenizer/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "octet/text/tokenizer/json_reader.h"

namespace octet::text {
namespace {

constexpr std::string_view kWhere = "tokenizer_config.json";
constexpr std::string_view kAddedTokens = "added_tokens_decoder";

Result<std::optional<bool>> optional_flag(const Json& json, std::string_view key) {
  if (member(json, key) == nullptr) return std::nullopt;
  OCTET_TRY(const bool value, read_flag(json, key, false, kWhere));
  return value;
}

// A token: a string, or an object with its content.
Result<std::optional<std::string>> optional_token(const Json& json, std::string_view key) {
  const Json* value = member(json, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) {
    OCTET_TRY(std::string content, read_text(*value, "content", fmt::format("{}: {}", kWhere, key)));
    return content;
  }
  OCTET_TRY(std::string text, read_text(json, key, kWhere));
  return text;
}

Result<AddedToken> read_added(std::string_view id, const Json& json) {
  const std::string path = fmt::format("{}: {}[\"{}\"]", kWhere, kAddedTokens, id.substr(0, 40));
  AddedToken token;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), token.id);
  if (error != std::errc() || end != id.data() + id.size() || token.id < 0) {
    return fail(ErrorCode::kInvalid, "{}: the key must be a token id", path);
  }
  if (!json.is_object()) return fail(ErrorCode::kInvalid, "{}: must be an object", path);
  OCTET_TRY(token.content, read_text(json, "content", path));
  OCTET_TRY(token.special, read_flag(json, "special", false, path));
  OCTET_TRY(token.single_word, read_flag(json, "single_word", false, path));
  OCTET_TRY(token.strip_left, read_flag(json, "lstrip", false, path));
  OCTET_TRY(token.strip_right, read_flag(json, "rstrip", false, path));
  OCTET_TRY(token.normalized, read_flag(json, "normalized", !token.special, path));
  return token;
}

Result<std::vector<AddedToken>> read_added_tokens(const Json& root) {
  std::vector<AddedToken> added;
  const Json* list = member(root, kAddedTokens);
  if (list == nullptr) return added;
  if (!list->is_object()) return fail(ErrorCode::kInvalid, "{}: {}: must be an object", kWhere, kAddedTokens);
  for (const auto& [id, token] : list->items()) {
    OCTET_TRY(AddedToken read, read_added(id, token));
    if (!read.content.empty()) added.push_back(std::move(read));
  }
  std::ranges::sort(added, {}, [](const AddedToken& token) { return std::tie(token.id, token.content); });
  return added;
}

// Names the code that knows how to use the file.
std::string implementation_of(const Json& root) {
  if (const Json* map = member(root, "auto_map"); map != nullptr && map->is_object()) {
    const Json* entry = member(*map, "AutoTokenizer");
    if (entry != nullptr && entry->is_array() && !entry->empty()) entry = &entry->front();
    if (entry != nullptr && entry->is_string()) return entry->get<std::string>();
  }
  const Json* name = member(root, "tokenizer_class");
  return name != nullptr && name->is_string() ? name->get<std::string>() : "";
}

}  // namespace

Result<TokenizerConfig> read_tokenizer_config(std::string_view json) {
  TokenizerConfig config;
  if (json.empty()) return config;
  auto parsed = parse_json(json);
  if (!parsed) return within(kWhere, std::move(parsed).error());
  if (!parsed->is_object()) return fail(ErrorCode::kInvalid, "{}: must be a JSON object", kWhere);
  OCTET_TRY(config.added, read_added_tokens(*parsed));
  OCTET_TRY(config.add_bos, optional_flag(*parsed, "add_bos_token"));
  OCTET_TRY(config.add_eos, optional_flag(*parsed, "add_eos_token"));
  OCTET_TRY(config.add_prefix_space, optional_flag(*parsed, "add_prefix_space"));
  OCTET_TRY(config.legacy, optional_flag(*parsed, "legacy"));
  OCTET_TRY(config.bos, optional_token(*parsed, "bos_token"));
  OCTET_TRY(config.eos, optional_token(*parsed, "eos_token"));
  for (const char* key : {"pattern", "pat_str"}) {
    if (member(*parsed, key) == nullptr) continue;
    OCTET_TRY(config.pattern, read_text(*parsed, key, kWhere));
  }
  config.implementation = implementation_of(*parsed);
  return config;
}

}  // namespace octet::text
