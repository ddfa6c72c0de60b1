#include "octet/text/tokenizer/post_processor.h"

#include <string>

#include "octet/text/tokenizer/json_reader.h"

namespace octet::text {
namespace {

Result<std::vector<TokenId>> special_ids(const Json& json, const std::string& name, std::string_view path) {
  const std::string where = fmt::format("{}.special_tokens[\"{}\"]", path, name);
  const Json* table = member(json, "special_tokens");
  const Json* entry = table != nullptr && table->is_object() ? member(*table, name) : nullptr;
  if (entry == nullptr || !entry->is_object()) return fail(ErrorCode::kInvalid, "{}: missing", where);
  OCTET_TRY(const Json* const list, read_list(*entry, "ids", where));
  std::vector<TokenId> ids;
  for (const Json& item : *list) {
    OCTET_TRY(const TokenId id, read_id(item, where));
    ids.push_back(id);
  }
  return ids;
}

Result<PostProcessor> read_template(const Json& json, std::string_view path) {
  OCTET_TRY(const Json* const list, read_list(json, "single", path));
  std::vector<TokenId> before, after;
  bool past_text = false;
  for (const Json& item : *list) {
    const std::string where = fmt::format("{}.single", path);
    if (!item.is_object()) return fail(ErrorCode::kInvalid, "{}: its items must be objects", where);
    if (member(item, "Sequence") != nullptr) {
      if (past_text) return fail(ErrorCode::kUnsupported, "{}: more than one sequence is not supported", where);
      past_text = true;
      continue;
    }
    const Json* special = member(item, "SpecialToken");
    if (special == nullptr || !special->is_object()) {
      return fail(ErrorCode::kInvalid, "{}: must hold SpecialToken or Sequence", where);
    }
    OCTET_TRY(const std::string name, read_text(*special, "id", where + ".SpecialToken"));
    OCTET_TRY(const std::vector<TokenId> ids, special_ids(json, name, path));
    auto& side = past_text ? after : before;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (!past_text) return fail(ErrorCode::kInvalid, "{}.single: has no Sequence", path);
  return PostProcessor(std::move(before), std::move(after));
}

// The second item of a pair [token, id].
Result<TokenId> pair_id(const Json& json, std::string_view key, std::string_view path) {
  const std::string where = fmt::format("{}.{}", path, key);
  const Json* pair = member(json, key);
  if (pair == nullptr || !pair->is_array() || pair->size() != 2) {
    return fail(ErrorCode::kInvalid, "{}: must be a token and its id", where);
  }
  return read_id((*pair)[1], where);
}

}  // namespace

Result<PostProcessor> make_post_processor(const Json& json, std::string_view path) {
  OCTET_TRY(const std::string type, read_type(json, path));
  if (type == "ByteLevel") return PostProcessor();  // it only mends offsets
  if (type == "TemplateProcessing") return read_template(json, path);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    OCTET_TRY(const TokenId before, pair_id(json, "cls", path));
    OCTET_TRY(const TokenId after, pair_id(json, "sep", path));
    return PostProcessor({before}, {after});
  }
  if (type == "Sequence") {
    OCTET_TRY(const Json* const list, read_list(json, "processors", path));
    std::vector<TokenId> before, after;
    for (std::size_t i = 0; i < list->size(); ++i) {
      OCTET_TRY(const PostProcessor part, make_post_processor((*list)[i], fmt::format("{}.processors[{}]", path, i)));
      before.insert(before.begin(), part.before().begin(), part.before().end());
      after.insert(after.end(), part.after().begin(), part.after().end());
    }
    return PostProcessor(std::move(before), std::move(after));
  }
  return fail(ErrorCode::kUnsupported, "{}.type: \"{}\" is not supported", path, type);
}

}  // namespace octet::text
