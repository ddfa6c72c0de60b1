// From a parsed body to requests that the engine can run: model name, template, tokens, lengths.
#pragma once
#include <string>
#include <string_view>

#include "octet/server/fingerprint.h"
#include "octet/server/openai_reply.h"
#include "octet/server/openai_request.h"
#include "octet/server/request_log.h"
#include "octet/server/service.h"

namespace octet::server {

struct ApiOptions {
  std::string root;                    // MODEL as the operator gave it; empty: the first name
  bool prompt_tokens_details = false;  // usage tells the cached tokens
  bool force_include_usage = false;    // streams end with usage, asked or not
  bool return_tokens_as_ids = false;   // log-probabilities call tokens by their ids
  bool tokenizer_info = false;         // GET /tokenizer_info is there
  bool request_metrics = false;        // answers of one choice tell their times
  int workers = 2;                     // threads for JSON, templates and tokenizing
  StreamOptions stream;
  FingerprintOptions fingerprint;
  std::string response_role = "assistant";  // of a chat's answer
  TemplateOptions templates;
  RequestLogOptions log;
  bool engine_metrics = true;  // /metrics tells the engine's figures
};

struct ApiCall {
  std::string_view body;
  std::string_view client_id;  // X-Request-Id, if the client sent one
};

// Takes the time that tokenizing takes. `service` gives the names, `model` the rest.
ApiResult<PreparedRequest> prepare_generation(ApiKind kind, const ApiCall& call, const Service& service,
                                              const ServedModel& model, const ApiOptions& options);

// The parts of which other APIs make their requests; an API of theirs is a chat inside.
//
// An id that nothing else has: prefix and 32 hexadecimal digits.
std::string new_id(std::string_view prefix);
AnswerFrame answer_frame(std::string_view id_prefix, const GenerationRequest& request, const Service& service);
// 404 unless the model is served; empty is the default one.
ApiResult<> check_model(const std::string& asked, const Service& service);
// Of a request of kind kChat. Takes the time that tokenizing takes.
ApiResult<engine::Request> prepare_chat(GenerationRequest& request, const ServedModel& model,
                                        const TemplateOptions& templates);

}  // namespace octet::server
