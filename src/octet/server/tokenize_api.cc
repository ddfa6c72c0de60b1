#include "octet/server/tokenize_api.h"

#include <utility>
#include <vector>

#include "octet/server/openai_request.h"

namespace octet::server {
namespace {

ApiResult<Json> read_body(std::string_view body, const Service& service) {
  OCTET_TRY(Json parsed, parse_body(body));
  if (!parsed.is_object()) {
    return std::unexpected(bad_form({}, fmt::format("the body must be a JSON object, got {}", shown(parsed))));
  }
  JsonFields fields(parsed);
  const auto name = fields.string("model");
  if (!fields.ok()) return std::unexpected(fields.error());
  if (name && !name->empty() && !service.serves(*name)) {
    return std::unexpected(model_not_found(*name, service.names_text()));
  }
  return parsed;
}

// By hand: a list of millions takes many times its size as Json.
std::string tokens_json(const std::vector<text::TokenId>& ids, const text::Tokenizer& tokenizer,
                        std::int32_t max_model_len, bool with_strings) {
  std::string out = fmt::format("{{\"count\":{},\"max_model_len\":{},\"tokens\":[", ids.size(), max_model_len);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    out += fmt::format_int(ids[i]).c_str();
  }
  out += "],\"token_strs\":";
  if (!with_strings) return out + "null}";
  out += '[';
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) out += ',';
    out += dump_json(tokenizer.token(ids[i]).value_or(""));
  }
  return out + "]}";
}

ApiError without_tokenizer() { return bad_value({}, "this server runs without a tokenizer"); }

}  // namespace

ApiResult<std::string> answer_tokenize(std::string_view body, const Service& service, const ServedModel& model,
                                       const TemplateOptions& options) {
  OCTET_TRY(const Json parsed, read_body(body, service));
  if (!model.replica->tokenizer) return std::unexpected(without_tokenizer());
  JsonFields fields(parsed);
  const bool with_strings = fields.boolean("return_token_strs").value_or(false);
  std::vector<text::TokenId> ids;
  if (fields.find("messages") != nullptr && fields.find("prompt") == nullptr) {
    ChatPrompt prompt = parse_chat_prompt(fields);
    if (!fields.ok()) return std::unexpected(fields.error());
    OCTET_TRY(ids, chat_tokens(std::move(prompt), model, options, SizeCheck::kNone));
  } else {
    const auto text = fields.string("prompt");
    if (!text) fields.fail_form("prompt", "a string, or messages in its place");
    const bool add_special = fields.boolean("add_special_tokens").value_or(true);
    if (!fields.ok()) return std::unexpected(fields.error());
    OCTET_TRY(ids, text_tokens(*text, add_special, model, SizeCheck::kNone));
  }
  return tokens_json(ids, *model.replica->tokenizer, model.replica->max_model_len, with_strings);
}

ApiResult<std::string> answer_detokenize(std::string_view body, const Service& service, const ServedModel& model) {
  OCTET_TRY(const Json parsed, read_body(body, service));
  if (!model.replica->tokenizer) return std::unexpected(without_tokenizer());
  JsonFields fields(parsed);
  const Json* tokens = fields.array("tokens");
  if (tokens == nullptr) {
    fields.fail_form("tokens", "a list of token ids");
    return std::unexpected(fields.error());
  }
  OCTET_TRY(const std::vector<text::TokenId> ids, parse_token_ids(*tokens, "tokens"));
  return dump_json({{"prompt", model.replica->tokenizer->decode(ids, false)}});
}

}  // namespace octet::server
