// POST /tokenize and /detokenize as vLLM has them: bodies to answers.
#pragma once
#include <string>
#include <string_view>

#include "octet/server/api_error.h"
#include "octet/server/prompt.h"
#include "octet/server/service.h"

namespace octet::server {

// {"prompt": text} parses special tokens and adds those of the post-processor, as its caller wrote the whole prompt;
// {"messages": [...]} is the prompt of a chat. Gives {"count", "max_model_len", "tokens", "token_strs"}; token_strs is
// null without return_token_strs. The prompt may be longer than the context.
ApiResult<std::string> answer_tokenize(std::string_view body, const Service& service, const ServedModel& model,
                                       const TemplateOptions& options);
// {"tokens": [...]} to {"prompt"}: special tokens show, ids without a token give nothing.
ApiResult<std::string> answer_detokenize(std::string_view body, const Service& service, const ServedModel& model);

}  // namespace octet::server
