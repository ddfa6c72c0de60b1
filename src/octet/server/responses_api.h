// POST /v1/responses: OpenAI's Responses API in its text-only form. A response is a chat inside; nothing is stored.
#pragma once
#include <string_view>

#include "octet/server/openai_prepare.h"

namespace octet::server {

// As prepare_generation(); which value is refused how is listed in docs/api.md.
ApiResult<PreparedRequest> prepare_response(const ApiCall& call, const Service& service, const ServedModel& model,
                                            const ApiOptions& options);

// The answer for every path below /v1/responses/.
ApiError response_not_found(std::string_view path);

}  // namespace octet::server
