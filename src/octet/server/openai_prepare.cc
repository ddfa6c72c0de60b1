#include "octet/server/openai_prepare.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>

namespace octet::server {
namespace {

constexpr std::int64_t kDefaultCompletionTokens = 16;

// 64 bits of SHA-256, never 0: equal salts share cached prefixes, others practically never.
std::uint64_t salt_key(std::string_view salt) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(salt.data(), salt.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof key);
  return key | 1;
}

std::string new_id(std::string_view prefix) {
  static const std::uint64_t process = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }();
  static std::atomic<std::uint64_t> counter = 0;
  return fmt::format("{}-{:016x}{:016x}", prefix, process, ++counter);
}

class Preparation {
 public:
  Preparation(const ServedModel& model, GenerationRequest& request)
      : model_(model), replica_(*model.replica), request_(request) {}

  ApiResult<> check() const {
    if (replica_.tokenizer == nullptr && !request_.sampling.stop.empty()) {
      return std::unexpected(bad_value("stop", "stop strings need a tokenizer, and this server runs without one"));
    }
    const bool by_priority = replica_.engine->config().scheduler.policy == engine::SchedulerConfig::Policy::kPriority;
    if (request_.priority != 0 && !by_priority) {
      return std::unexpected(bad_value("priority", "priority needs a server with --scheduling-policy priority"));
    }
    const std::int64_t sequences =
        request_.choices * std::max<std::int64_t>(1, static_cast<std::int64_t>(request_.prompts.size()));
    const engine::SchedulerConfig& scheduler = replica_.engine->config().scheduler;
    const std::int64_t places = std::int64_t{scheduler.max_sequences} + scheduler.max_waiting;
    if (sequences > places) {
      return std::unexpected(bad_value(
          {}, fmt::format("prompts and n ask for {} sequences; {} may run and wait here", sequences, places)));
    }
    OCTET_TRY_VOID(check_ids(request_.sampling.stop_token_ids, "stop_token_ids"));
    return {};
  }

  ApiResult<std::vector<text::TokenId>> prompt_tokens(Prompt& prompt) const {
    if (auto* ids = std::get_if<std::vector<text::TokenId>>(&prompt)) return std::move(*ids);
    return text_tokens(std::get<std::string>(prompt), request_.add_special_tokens, model_);
  }

  // The output tokens that a prompt of this length may have.
  ApiResult<std::int32_t> max_tokens(std::size_t prompt_tokens) const {
    const std::int64_t room = replica_.max_model_len - static_cast<std::int64_t>(prompt_tokens);
    if (room < 1) {
      return std::unexpected(
          bad_value("input_tokens", fmt::format("the prompt has {} tokens; the context of {} tokens must hold it and "
                                                "at least one token of output",
                                                prompt_tokens, replica_.max_model_len)));
    }
    if (!request_.max_tokens) {
      const std::int64_t fallback = request_.kind == ApiKind::kChat
                                        ? replica_.generation.max_new_tokens.value_or(replica_.max_model_len)
                                        : kDefaultCompletionTokens;
      return static_cast<std::int32_t>(std::clamp<std::int64_t>(fallback, 1, room));
    }
    if (*request_.max_tokens > room) {
      return std::unexpected(bad_value(
          request_.max_tokens_field,
          fmt::format("{} is {}, but the context of {} tokens leaves {} behind the prompt's {}",
                      request_.max_tokens_field, *request_.max_tokens, replica_.max_model_len, room, prompt_tokens)));
    }
    return static_cast<std::int32_t>(*request_.max_tokens);
  }

  ApiResult<engine::Request> engine_request(std::vector<text::TokenId> prompt) const {
    if (prompt.empty()) return std::unexpected(bad_value("prompt", "the prompt has no tokens"));
    OCTET_TRY_VOID(check_ids(prompt, "prompt"));
    OCTET_TRY(const std::int32_t limit, max_tokens(prompt.size()));
    engine::Request out;
    out.prompt = std::move(prompt);
    out.sampling = request_.sampling;
    out.sampling.max_tokens = limit;
    out.choices = request_.choices;
    out.priority = request_.priority;
    if (request_.cache_salt) out.cache_salt = salt_key(*request_.cache_salt);
    out.want_text = replica_.tokenizer != nullptr;
    return out;
  }

  std::string echo_of(const Prompt& prompt) const {
    if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
    return replica_.tokenizer ? replica_.tokenizer->decode(std::get<std::vector<text::TokenId>>(prompt), false) : "";
  }

 private:
  ApiResult<> check_ids(const std::vector<text::TokenId>& ids, const std::string& param) const {
    const std::int32_t vocabulary = replica_.engine->config().vocabulary_size;
    for (const text::TokenId id : ids) {
      if (id >= 0 && id < vocabulary) continue;
      return std::unexpected(
          bad_value(param, fmt::format("{}: token id {} is outside the vocabulary of {}", param, id, vocabulary)));
    }
    return {};
  }

  const ServedModel& model_;
  const engine::Replica& replica_;
  GenerationRequest& request_;
};

AnswerFormat answer_format(const GenerationRequest& request, const Service& service, const ApiOptions& options) {
  AnswerFormat format;
  format.kind = request.kind;
  format.id = new_id(request.kind == ApiKind::kChat ? "chatcmpl" : "cmpl");
  format.model = request.model.empty() ? service.names().front() : request.model;
  format.created = std::time(nullptr);
  format.choices_per_prompt = request.choices;
  format.stream = request.stream;
  format.include_usage = request.include_usage || (request.stream && options.force_include_usage);
  format.continuous_usage = request.continuous_usage;
  format.return_token_ids = request.return_token_ids;
  format.cached_tokens = options.prompt_tokens_details;
  return format;
}

}  // namespace

ApiResult<PreparedRequest> prepare_generation(ApiKind kind, std::string_view body, const Service& service,
                                              const ServedModel& model, const ApiOptions& options) {
  OCTET_TRY(Json parsed, parse_body(body));
  OCTET_TRY(GenerationRequest request, parse_generation_request(kind, std::move(parsed), model.replica->generation));
  if (!request.model.empty() && !service.serves(request.model)) {
    return std::unexpected(model_not_found(request.model, service.names_text()));
  }
  const Preparation preparation(model, request);
  OCTET_TRY_VOID(preparation.check());
  PreparedRequest prepared;
  prepared.format = answer_format(request, service, options);
  const auto add = [&](std::vector<text::TokenId> ids) -> ApiResult<> {
    OCTET_TRY(engine::Request one, preparation.engine_request(std::move(ids)));
    if (request.return_token_ids) prepared.format.prompt_ids.push_back(one.prompt);
    prepared.requests.push_back(std::move(one));
    return {};
  };
  if (kind == ApiKind::kChat) {
    OCTET_TRY(std::vector<text::TokenId> ids, chat_tokens(std::move(request.chat), model, options.templates));
    OCTET_TRY_VOID(add(std::move(ids)));
  }
  for (Prompt& prompt : request.prompts) {
    if (request.echo) prepared.format.echo.push_back(preparation.echo_of(prompt));
    OCTET_TRY(std::vector<text::TokenId> ids, preparation.prompt_tokens(prompt));
    OCTET_TRY_VOID(add(std::move(ids)));
  }
  prepared.format.prompts = static_cast<std::int32_t>(prepared.requests.size());
  return prepared;
}

}  // namespace octet::server
