// POST /v1/messages and /v1/messages/count_tokens: Anthropic's Messages API in its text-only form. A message is a chat
// inside.
#pragma once
#include <string>
#include <string_view>

#include "octet/server/openai_prepare.h"

namespace octet::server {

// As prepare_generation(); which value is refused how is listed in docs/api.md.
ApiResult<PreparedRequest> prepare_message(const ApiCall& call, const Service& service, const ServedModel& model,
                                           const ApiOptions& options);

// {"input_tokens": N} for a body as above, max_tokens aside. Takes the time that tokenizing takes.
ApiResult<std::string> count_message_tokens(std::string_view body, const Service& service, const ServedModel& model,
                                            const TemplateOptions& templates);

// {"type": "error", "error": {"type", "message"}}, with Retry-After where the error has it.
std::string anthropic_error_json(const ApiError& error);
HttpResponse anthropic_error(const ApiError& error);

}  // namespace octet::server
