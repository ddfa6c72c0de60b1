// From the fields that say what a model is asked to the tokens of the prompt; shared by the routes that generate and by
// /tokenize.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/json.h"
#include "octet/server/api_error.h"
#include "octet/server/json_fields.h"
#include "octet/server/service.h"
#include "octet/text/template_form.h"

namespace octet::server {

// What the operator says about templates.
struct TemplateOptions {
  bool trust_request = false;  // a request may bring a template of its own
  text::ContentFormat content_format = text::ContentFormat::kAuto;
  Json default_variables = Json::object();  // for templates; chat_template_kwargs of a request overrides them
};

struct ChatPrompt {
  Json messages;                              // checked, in the client's form
  Json tools = nullptr, documents = nullptr;  // as sent
  Json variables = Json::object();            // chat_template_kwargs
  std::optional<std::string> chat_template;   // a template, or the name of one of the model's
  bool add_generation_prompt = true, continue_final_message = false;
  bool add_special_tokens = false;  // also BOS and so on where the template wrote none
};

// Errors stay in fields.
ChatPrompt parse_chat_prompt(JsonFields& fields);

// kContext: a prompt that cannot fit the context is refused by its bytes, before time goes into tokenizing it.
enum class SizeCheck { kNone, kContext };

// Errors: 400 with the field at fault; template errors name the template's line.
ApiResult<std::vector<text::TokenId>> chat_tokens(ChatPrompt&& prompt, const ServedModel& model,
                                                  const TemplateOptions& options,
                                                  SizeCheck check = SizeCheck::kContext);
// Strings of special tokens become those tokens.
ApiResult<std::vector<text::TokenId>> text_tokens(std::string_view text, bool add_special, const ServedModel& model,
                                                  SizeCheck check = SizeCheck::kContext);

// [1, 2, 3] as token ids; path names the list.
ApiResult<std::vector<text::TokenId>> parse_token_ids(const Json& list, const std::string& path);

// The messages of a chat: known roles, content as a string or a list of text parts, calls with names.
// path: of the list inside the body, for errors.
ApiResult<Json> check_messages(const Json& messages, std::string_view path = "messages");

}  // namespace octet::server
