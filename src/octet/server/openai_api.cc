#include "octet/server/openai_api.h"

#include <atomic>
#include <exception>

#include "octet/base/json.h"
#include "octet/base/log.h"
#include "octet/server/messages_api.h"
#include "octet/server/metrics.h"
#include "octet/server/request_id.h"
#include "octet/server/responses_api.h"
#include "octet/server/tokenize_api.h"
#include "octet/server/work_reply.h"
#include "octet/server/worker_pool.h"

namespace octet::server {
namespace {

constexpr std::size_t kMaxQueuedJobs = 4096;
constexpr std::size_t kMaxQueuedBytes = std::size_t{512} << 20;
constexpr std::size_t kLongBody = std::size_t{256} << 10;  // about 0.1 s of tokenizing

HttpResponse json_response(const Json& body) { return {200, "application/json", dump_json(body), {}}; }

Json model_card(const std::string& name, const Service& service, const ServedModel& model, const std::string& root) {
  Json card;
  card["id"] = name;
  card["object"] = "model";
  card["created"] = service.created();
  card["owned_by"] = "octet";
  card["root"] = root.empty() ? service.names().front() : root;
  card["parent"] = nullptr;
  card["max_model_len"] = model.replica->max_model_len;
  card["permission"] = Json::array();
  return card;
}

template <ApiKind kKind>
ApiResult<PreparedRequest> prepare_kind(const ApiCall& call, const Service& service, const ServedModel& model,
                                        const ApiOptions& options) {
  return prepare_generation(kKind, call, service, model, options);
}

}  // namespace

struct OpenAiApi::State {
  State(Service& the_service, ApiOptions the_options)
      : service(the_service), options(the_options), workers(options.workers, kMaxQueuedJobs) {}

  // Bodies to requests for the engine.
  using Prepare = ApiResult<PreparedRequest> (*)(const ApiCall& call, const Service& service, const ServedModel& model,
                                                 const ApiOptions& options);
  RequestHandler generator(Prepare prepare, ErrorForm error_form = error_response);
  void start(Prepare prepare, const ApiCall& call, const std::shared_ptr<ServedModel>& model, GenerationReply& reply);
  // Bodies to answers, without the engine.
  using BodyHandler = ApiResult<std::string> (State::*)(std::string_view body, const ServedModel& model) const;
  RequestHandler on_worker(BodyHandler handler, ErrorForm error_form = error_response);
  ApiResult<std::string> tokenize(std::string_view body, const ServedModel& model) const {
    return answer_tokenize(body, service, model, options.templates);
  }
  ApiResult<std::string> detokenize(std::string_view body, const ServedModel& model) const {
    return answer_detokenize(body, service, model);
  }
  ApiResult<std::string> count_tokens(std::string_view body, const ServedModel& model) const {
    return count_message_tokens(body, service, model, options.templates);
  }
  // job(body) runs on a worker; false: too many wait already.
  template <typename Job>
  bool post(std::string body, Job job);
  HttpResponse models();
  HttpResponse one_model(std::string_view name);
  HttpResponse tokenizer_info();

  Service& service;
  ApiOptions options;
  std::atomic<std::size_t> queued_bytes = 0;  // of bodies that workers have not read
  WorkerPool workers;
};

RequestHandler OpenAiApi::State::generator(Prepare prepare, ErrorForm error_form) {
  return [this, prepare, error_form](HttpRequest&& request, const std::shared_ptr<Waker>& waker) -> Answer {
    auto model = service.admit();
    if (!model) return error_form(model.error());
    auto reply = std::make_shared<GenerationReply>(waker, error_form, options.log, options.stream);
    const auto job = [this, prepare, reply, model = *model,
                      client_id = client_request_id(request)](const std::string& body) {
      start(prepare, {.body = body, .client_id = client_id}, model, *reply);
    };
    const bool queued = post(std::move(request.body), job);
    if (!queued) return error_form(queue_full("too many requests wait to be read"));
    return reply;
  };
}

template <typename Job>
bool OpenAiApi::State::post(std::string body, Job job) {
  const std::size_t bytes = body.size();
  const bool room = queued_bytes.fetch_add(bytes) + bytes <= kMaxQueuedBytes;
  const auto length = bytes > kLongBody ? WorkerPool::Length::kLong : WorkerPool::Length::kShort;
  auto run = [this, job = std::move(job), body = std::move(body)] {
    job(body);
    queued_bytes -= body.size();
  };
  const bool queued = room && workers.post(std::move(run), length);
  if (queued) return true;
  queued_bytes -= bytes;
  service.count_full_queue();
  return false;
}

RequestHandler OpenAiApi::State::on_worker(BodyHandler handler, ErrorForm error_form) {
  return [this, handler, error_form](HttpRequest&& request, const std::shared_ptr<Waker>& waker) -> Answer {
    auto model = service.admit();
    if (!model) return error_form(model.error());
    auto reply = std::make_shared<WorkReply>(waker, error_form);
    const auto job = [this, handler, error_form, reply, model = *model](const std::string& body) {
      if (reply->abandoned()) return;
      try {
        auto answer = (this->*handler)(body, *model);
        reply->answer(answer ? HttpResponse{200, "application/json", *std::move(answer), {}}
                             : error_form(answer.error()));
      } catch (const std::exception& problem) {
        log_error("a request could not be answered: {}", problem.what());
        reply->answer(error_form(internal_error("the request could not be answered")));
      }
    };
    if (!post(std::move(request.body), job)) return error_form(queue_full("too many requests wait to be read"));
    return reply;
  };
}

void OpenAiApi::State::start(Prepare prepare, const ApiCall& call, const std::shared_ptr<ServedModel>& model,
                             GenerationReply& reply) {
  if (reply.abandoned()) return;
  try {
    auto prepared = prepare(call, service, *model, options);
    if (!prepared) {
      reply.fail(prepared.error());
    } else if (!reply.abandoned()) {
      if (options.log.requests) log_prompts(options.log, *prepared, *model->replica);
      reply.start(model, *std::move(prepared), service);
    }
  } catch (const std::exception& problem) {
    // Out of memory, most likely; one request must not end the process.
    log_error("a request could not be prepared: {}", problem.what());
    reply.fail(internal_error("the request could not be prepared"));
  }
}

HttpResponse OpenAiApi::State::models() {
  auto model = service.available();
  if (!model) return error_response(model.error());
  Json body;
  body["object"] = "list";
  body["data"] = Json::array();
  for (const std::string& name : service.names())
    body["data"].push_back(model_card(name, service, **model, options.root));
  return json_response(body);
}

HttpResponse OpenAiApi::State::one_model(std::string_view name) {
  auto model = service.available();
  if (!model) return error_response(model.error());
  if (!service.serves(name)) return error_response(model_not_found(name, service.names_text()));
  return json_response(model_card(std::string(name), service, **model, options.root));
}

HttpResponse OpenAiApi::State::tokenizer_info() {
  auto model = service.available();
  if (!model) return error_response(model.error());
  const engine::Replica& replica = *(*model)->replica;
  if (!replica.tokenizer) return error_response(bad_value({}, "this server runs without a tokenizer"));
  return json_response(replica.tokenizer_info);
}

OpenAiApi::OpenAiApi(Service& service, ApiOptions options) : state_(std::make_unique<State>(service, options)) {}
OpenAiApi::~OpenAiApi() = default;

void OpenAiApi::stop() { state_->workers.stop(); }

void OpenAiApi::add_routes(Router& router) {
  State* state = state_.get();
  using Wake = const std::shared_ptr<Waker>&;
  router.add("POST", "/v1/chat/completions", state->generator(prepare_kind<ApiKind::kChat>));
  router.add("POST", "/v1/completions", state->generator(prepare_kind<ApiKind::kCompletion>));
  router.add("POST", "/v1/responses", state->generator(prepare_response));
  for (const std::string_view method : {"GET", "DELETE", "POST"}) {
    router.add(method, "/v1/responses/*",
               [](HttpRequest&& request, Wake) { return Answer(error_response(response_not_found(request.path))); });
  }
  router.set_error_form("/v1/messages", anthropic_error);
  router.add("POST", "/v1/messages", state->generator(prepare_message, anthropic_error));
  router.add("POST", "/v1/messages/count_tokens", state->on_worker(&State::count_tokens, anthropic_error));
  router.add("POST", "/tokenize", state->on_worker(&State::tokenize));
  router.add("POST", "/detokenize", state->on_worker(&State::detokenize));
  if (state->options.tokenizer_info) {
    router.add("GET", "/tokenizer_info", [state](HttpRequest&&, Wake) { return Answer(state->tokenizer_info()); });
  }
  router.add("GET", "/v1/models", [state](HttpRequest&&, Wake) { return Answer(state->models()); });
  router.add("GET", "/v1/models/*", [state](HttpRequest&& request, Wake) {
    return Answer(state->one_model(std::string_view(request.path).substr(sizeof "/v1/models/" - 1)));
  });
  const auto alive = [state](HttpRequest&&, Wake) {
    const auto alive = state->service.alive();
    return Answer(alive ? HttpResponse{} : error_response(alive.error()));
  };
  router.add("GET", "/health", alive);
  router.add("GET", "/ping", alive);
  router.add("POST", "/ping", alive);
  router.add("GET", "/ready", [state](HttpRequest&&, Wake) {
    if (const auto alive = state->service.alive(); !alive) return Answer(error_response(alive.error()));
    auto model = state->service.available();
    return Answer(model ? HttpResponse{} : error_response(model.error()));
  });
  router.add("GET", "/version",
             [](HttpRequest&&, Wake) { return Answer(json_response({{"version", OCTET_VERSION}})); });
  router.add("GET", "/metrics", [state](HttpRequest&&, Wake) {
    return Answer(HttpResponse{200,
                               "text/plain; version=0.0.4; charset=utf-8",
                               metrics_text(state->service, state->options.engine_metrics),
                               {}});
  });
}

}  // namespace octet::server
