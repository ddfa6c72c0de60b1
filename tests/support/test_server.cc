#include "tests/support/test_server.h"

#include <chrono>
#include <thread>

#include "octet/base/check.h"
#include "octet/engine/replica.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/script_executor.h"

namespace octet::testing {
namespace {

std::unique_ptr<engine::Executor> make_plain_executor(TestServerOptions& options) {
  if (options.executor) return std::move(options.executor);
  std::vector<text::TokenId> script = bytes_of_text(options.script);
  if (options.ends) script.push_back(kByteEos);
  auto executor = std::make_unique<ScriptExecutor>(std::move(script), options.max_sequences, options.step_time);
  if (options.experts) executor->make_experts();
  return executor;
}

std::unique_ptr<engine::Executor> make_executor(TestServerOptions& options) {
  auto executor = make_plain_executor(options);
  if (!options.faults) return executor;
  return std::make_unique<FaultyExecutor>(std::move(executor), options.faults);
}

std::unique_ptr<engine::Replica> make_replica(TestServerOptions& options) {
  auto replica = std::make_unique<engine::Replica>();
  if (options.tokenizer) {
    replica->tokenizer = options.other_tokenizer ? std::move(options.other_tokenizer) : make_byte_tokenizer();
  }
  if (options.chat_template) {
    for (const auto& [name, source] : options.chat_templates) {
      auto made = text::NamedTemplate::parse(name, source, {});
      OCTET_CHECK(made.has_value());
      replica->chat_templates.add(*std::move(made));
    }
  }
  replica->max_model_len = options.max_model_len;
  replica->backend = "script";
  engine::EngineConfig config;
  config.vocabulary_size = kByteVocabulary;
  config.scheduler.policy = options.policy;
  config.scheduler.max_sequences = options.max_sequences;
  config.scheduler.max_step_rows = options.max_step_rows;
  config.scheduler.max_context = options.max_model_len;
  config.scheduler.blocks = options.blocks;
  config.scheduler.prefix_caching = options.prefix_caching;
  config.scheduler.max_waiting = options.max_waiting;
  config.scheduler.eos_tokens = {kByteEos};
  config.max_admitted = options.max_admitted;
  config.max_queued_tokens = options.max_queued_tokens;
  config.histogram_buckets = options.histogram_buckets;
  config.scheduler.max_scored_rows = 8;
  replica->kv_tokens = std::int64_t{options.blocks} * config.scheduler.block_size;
  replica->engine =
      std::make_unique<engine::Engine>(config, make_executor(options), replica->tokenizer.get(), *options.clock);
  return replica;
}

}  // namespace

TestServer::TestServer(TestServerOptions options)
    : options_(std::move(options)), front_(router_, options_.front), log_(options_.api.log, router_, front_, service_) {
  api_ = std::make_unique<server::OpenAiApi>(service_, options_.api);
  api_->add_routes(router_);
  if (options_.load) publish();
  server::HttpServerOptions http;
  http.host = options_.host;
  http.port = 0;
  http.io_threads = options_.io_threads;
  http.limits = options_.limits;
  http.tls = options_.tls;
  auto bound = server::HttpServer::bind(http, log_);
  OCTET_CHECK(bound.has_value());
  http_ = *std::move(bound);
  http_->start();
}

TestServer::~TestServer() {
  http_->stop();
  api_->stop();
}

void TestServer::publish() { service_.publish(make_replica(options_)); }

bool TestServer::comes_to_rest() {
  return eventually([this] {
    const engine::EngineStats stats = engine().stats();
    return stats.running == 0 && stats.waiting == 0 && stats.blocks_used == 0;
  });
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace octet::testing
