#include "octet/server/openai_prepare.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>

#include "octet/server/openai_answer.h"

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

class Preparation {
 public:
  Preparation(const ServedModel& model, GenerationRequest& request)
      : model_(model), replica_(*model.replica), request_(request) {}

  // Also turns what depends on the model into the engine's terms.
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
    const std::int32_t places = replica_.engine->places();
    if (sequences > places) {
      return std::unexpected(bad_value(
          {}, fmt::format("prompts and n ask for {} sequences; {} may run and wait here", sequences, places)));
    }
    OCTET_TRY_VOID(check_ids(request_.sampling.stop_token_ids, "stop_token_ids"));
    OCTET_TRY_VOID(check_ids(request_.sampling.controls.allowed, "allowed_token_ids"));
    for (const auto& [id, bias] : request_.sampling.controls.logit_bias) {
      OCTET_TRY_VOID(check_ids({id}, "logit_bias"));
    }
    if (request_.kind == ApiKind::kCompletion && request_.echo && request_.sampling.logprobs >= 0) {
      request_.sampling.prompt_logprobs = std::max(request_.sampling.prompt_logprobs, request_.sampling.logprobs);
    }
    OCTET_TRY_VOID(check_logprobs(request_.sampling.logprobs, "logprobs"));
    OCTET_TRY_VOID(check_logprobs(request_.sampling.prompt_logprobs, "prompt_logprobs"));
    return add_bad_words();
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
    OCTET_TRY_VOID(truncate(prompt));
    if (prompt.empty()) return std::unexpected(bad_value("prompt", "the prompt has no tokens"));
    OCTET_TRY_VOID(check_ids(prompt, "prompt"));
    OCTET_TRY(const std::int32_t limit, max_tokens(prompt.size()));
    if (request_.sampling.controls.min_tokens > limit) {
      return std::unexpected(
          bad_value("min_tokens", fmt::format("min_tokens is {}, more than the {} tokens that the answer may have",
                                              request_.sampling.controls.min_tokens, limit)));
    }
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
  ApiResult<> check_logprobs(std::int32_t& wanted, const std::string& param) const {
    const std::int32_t most = replica_.engine->config().max_logprobs;
    const bool all = wanted == std::numeric_limits<std::int32_t>::max();
    if (all && most >= replica_.engine->config().vocabulary_size) {
      wanted = most;  // all were asked for
    }
    if (wanted <= most) return {};
    return std::unexpected(
        bad_value(param, fmt::format("{}: {} tokens are asked for, at most {} are told here (--max-logprobs)", param,
                                     all ? "all" : std::to_string(wanted), most)));
  }

  // A word may stand at the start of a text or behind a space: both ways of spelling it are forbidden.
  ApiResult<> add_bad_words() const {
    if (request_.bad_words.empty()) return {};
    if (replica_.tokenizer == nullptr) {
      return std::unexpected(bad_value("bad_words", "bad_words need a tokenizer, and this server runs without one"));
    }
    auto& words = request_.sampling.controls.bad_words;
    for (const std::string& word : request_.bad_words) {
      const std::size_t first = word.find_first_not_of(' ');
      const std::string bare = first == std::string::npos ? word : word.substr(first);
      for (const std::string& spelling : {bare, " " + bare}) {
        const auto ids = replica_.tokenizer->encode(spelling, {.add_special = false});
        if (!ids) return std::unexpected(bad_value("bad_words", "bad_words: " + ids.error().message));
        if (!ids->empty()) words.push_back(*ids);
      }
    }
    return {};
  }

  // Keeps the end of the prompt.
  ApiResult<> truncate(std::vector<text::TokenId>& prompt) const {
    if (!request_.truncate_prompt_tokens) return {};
    std::int64_t most = *request_.truncate_prompt_tokens;
    if (most > replica_.max_model_len) {
      return std::unexpected(bad_value("truncate_prompt_tokens",
                                       fmt::format("truncate_prompt_tokens is {}, more than the context of {} tokens",
                                                   most, replica_.max_model_len)));
    }
    if (most < 0) most = replica_.max_model_len - 1;
    if (static_cast<std::int64_t>(prompt.size()) > most) prompt.erase(prompt.begin(), prompt.end() - most);
    return {};
  }

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

// As in vLLM: an answer that begins no turn of its own belongs to the last message.
std::string answer_role(const ChatPrompt& chat, const ApiOptions& options) {
  if (chat.add_generation_prompt || chat.messages.empty()) return options.response_role;
  return chat.messages.back()["role"].get<std::string>();
}

AnswerFormat answer_format(const GenerationRequest& request, const Service& service, const ApiOptions& options) {
  AnswerFormat format;
  format.kind = request.kind;
  const std::string_view prefix = request.kind == ApiKind::kChat ? "chatcmpl-" : "cmpl-";
  static_cast<AnswerFrame&>(format) = answer_frame(prefix, request, service);
  if (!request.request_id.empty()) format.id = fmt::format("{}{}", prefix, request.request_id);
  if (request.kind == ApiKind::kChat) format.role = answer_role(request.chat, options);
  format.include_usage = request.include_usage || (request.stream && options.force_include_usage);
  format.continuous_usage = request.continuous_usage;
  format.return_token_ids = request.return_token_ids;
  format.cached_tokens = options.prompt_tokens_details;
  format.logprobs = request.sampling.logprobs;
  format.prompt_logprobs = request.sampling.prompt_logprobs;
  format.echo_logprobs = request.echo && request.sampling.logprobs >= 0;
  format.echo_alone = request.echo_alone;
  format.tokens_as_ids = request.return_tokens_as_ids.value_or(options.return_tokens_as_ids);
  return format;
}

}  // namespace

std::string new_id(std::string_view prefix) {
  static const std::uint64_t process = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }();
  static std::atomic<std::uint64_t> counter = 0;
  return fmt::format("{}{:016x}{:016x}", prefix, process, ++counter);
}

AnswerFrame answer_frame(std::string_view id_prefix, const GenerationRequest& request, const Service& service) {
  AnswerFrame frame;
  frame.id = new_id(id_prefix);
  frame.model = request.model.empty() ? service.names().front() : request.model;
  frame.created = std::time(nullptr);
  frame.choices_per_prompt = request.choices;
  frame.stream = request.stream;
  return frame;
}

ApiResult<> check_model(const std::string& asked, const Service& service) {
  if (asked.empty() || service.serves(asked)) return {};
  return std::unexpected(model_not_found(asked, service.names_text()));
}

ApiResult<engine::Request> prepare_chat(GenerationRequest& request, const ServedModel& model,
                                        const TemplateOptions& templates) {
  const Preparation preparation(model, request);
  OCTET_TRY_VOID(preparation.check());
  OCTET_TRY(std::vector<text::TokenId> ids, chat_tokens(std::move(request.chat), model, templates));
  return preparation.engine_request(std::move(ids));
}

ApiResult<PreparedRequest> prepare_generation(ApiKind kind, const ApiCall& call, const Service& service,
                                              const ServedModel& model, const ApiOptions& options) {
  OCTET_TRY(Json parsed, parse_body(call.body));
  OCTET_TRY(GenerationRequest request, parse_generation_request(kind, std::move(parsed), model.replica->generation));
  if (!call.client_id.empty()) request.request_id = call.client_id;
  OCTET_TRY_VOID(check_model(request.model, service));
  const Preparation preparation(model, request);
  OCTET_TRY_VOID(preparation.check());
  PreparedRequest prepared;
  AnswerFormat format = answer_format(request, service, options);
  format.tokenizer = model.replica->tokenizer.get();
  // There is nothing else that an answer could show.
  if (format.tokenizer == nullptr) format.return_token_ids = true;
  format.fingerprint = fingerprint_json(options.fingerprint, *model.replica, model.configuration_hash);
  const auto add = [&](std::vector<text::TokenId> ids) -> ApiResult<> {
    OCTET_TRY(engine::Request one, preparation.engine_request(std::move(ids)));
    if (format.needs_prompt_ids()) format.prompt_ids.push_back(one.prompt);
    prepared.requests.push_back(std::move(one));
    return {};
  };
  if (kind == ApiKind::kChat) {
    OCTET_TRY(std::vector<text::TokenId> ids, chat_tokens(std::move(request.chat), model, options.templates));
    OCTET_TRY_VOID(add(std::move(ids)));
  }
  for (Prompt& prompt : request.prompts) {
    if (request.echo) format.echo.push_back(preparation.echo_of(prompt));
    OCTET_TRY(std::vector<text::TokenId> ids, preparation.prompt_tokens(prompt));
    OCTET_TRY_VOID(add(std::move(ids)));
  }
  format.prompts = static_cast<std::int32_t>(prepared.requests.size());
  format.metrics = options.request_metrics && format.choices() == 1;
  prepared.writer = std::make_unique<AnswerBuilder>(std::move(format));
  return prepared;
}

}  // namespace octet::server
