// The server over a model that costs nothing: tokens per second over many streams, with the clients on the same cores,
// and the memory of streams that wait.
//   server_bench [streams] [seconds]      default 64 and 5
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/stream_load.h"
#include "octet/base/check.h"
#include "octet/engine/engine.h"
#include "octet/server/http_server.h"
#include "octet/server/openai_api.h"
#include "octet/server/router.h"
#include "octet/server/service.h"

namespace {

using namespace octet;
using Clock = std::chrono::steady_clock;

// Says one letter after another, as fast as it is asked; can be made to wait.
class LetterExecutor final : public engine::Executor {
 public:
  explicit LetterExecutor(std::chrono::milliseconds pause) : pause_(pause) {}  // before each step
  engine::Ticket submit(engine::StepPlan plan) override {
    spans_.assign(plan.spans().begin(), plan.spans().end());
    return {plan.header().step};
  }
  engine::StepResult collect(engine::Ticket ticket) override {
    held_.wait(true);
    if (pause_.count() > 0) std::this_thread::sleep_for(pause_);
    results_.clear();
    tokens_.clear();
    for (const engine::Span& span : spans_) {
      results_.push_back({span.slot, span.logits_rows, static_cast<std::int32_t>(tokens_.size())});
      if (span.logits_rows > 0) tokens_.push_back('a' + (span.first_position + span.rows) % 26);
    }
    return {.step = ticket.step, .interrupted = false, .spans = results_, .tokens = tokens_};
  }
  void interrupt() override {}
  void hold(bool on) {
    held_ = on;
    held_.notify_all();
  }

 private:
  const std::chrono::milliseconds pause_;
  std::atomic<bool> held_ = false;
  std::vector<engine::Span> spans_;
  std::vector<engine::SpanResult> results_;
  std::vector<engine::TokenId> tokens_;
};

// tokenizer.json of a byte-level vocabulary of the letters.
std::string letters_json() {
  std::string vocabulary;
  for (int byte = 33; byte <= 126; ++byte) {
    const std::string letter = byte == '"' || byte == '\\' ? std::string{'\\', static_cast<char>(byte)}
                                                           : std::string(1, static_cast<char>(byte));
    vocabulary += fmt::format("{}\"{}\":{}", vocabulary.empty() ? "" : ",", letter, byte);
  }
  return fmt::format(R"({{"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,)"
                     R"("pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false,"use_regex":true}},)"
                     R"("decoder":{{"type":"ByteLevel"}},"model":{{"type":"BPE","vocab":{{{}}},"merges":[]}}}})",
                     vocabulary);
}

class BenchServer {
 public:
  BenchServer(std::int32_t sequences, std::int32_t context, std::chrono::milliseconds pause) {
    auto replica = std::make_unique<engine::Replica>();
    auto tokenizer = text::Tokenizer::from_json(letters_json());
    OCTET_CHECK(tokenizer.has_value());
    replica->tokenizer = *std::move(tokenizer);
    replica->max_model_len = context;
    engine::EngineConfig config;
    config.vocabulary_size = 127;
    config.steps_in_flight = 1;
    config.scheduler.max_sequences = sequences;
    config.scheduler.max_step_rows = 4096;
    config.scheduler.max_context = context;
    config.scheduler.blocks = 1 << 18;
    config.scheduler.max_waiting = 1 << 20;
    auto executor = std::make_unique<LetterExecutor>(pause);
    executor_ = executor.get();
    replica->engine = std::make_unique<engine::Engine>(config, std::move(executor), replica->tokenizer.get());
    service_.publish(std::move(replica));
    api_.add_routes(router_);
    server::HttpServerOptions options;
    options.port = 0;
    auto http = server::HttpServer::bind(options, router_);
    OCTET_CHECK(http.has_value());
    http_ = *std::move(http);
    http_->start();
  }
  ~BenchServer() {
    executor_->hold(false);
    http_->stop();
    api_.stop();
  }
  int port() const { return http_->port(); }
  void hold(bool on) { executor_->hold(on); }
  engine::EngineStats stats() const { return service_.model()->replica->engine->stats(); }

 private:
  server::Service service_{{"letters"}};
  server::OpenAiApi api_{service_, {}};
  server::Router router_;
  LetterExecutor* executor_ = nullptr;
  std::unique_ptr<server::HttpServer> http_;
};

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

std::string request(int prompt, int tokens) {
  return fmt::format(R"({{"prompt":[{},65],"max_tokens":{},"temperature":0,"ignore_eos":true,"stream":true}})",
                     33 + prompt % 90, tokens);
}

void measure_rate(int streams, double seconds) {
  BenchServer server(streams, 1 << 20, std::chrono::milliseconds(0));
  bench::StreamLoad load(server.port(), streams, request(0, 1'000'000));
  OCTET_CHECK(load.wait_until_all_stream());
  const std::uint64_t events = load.events(), tokens = server.stats().generation_tokens;
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const double wall = std::chrono::duration<double>(Clock::now() - start).count();
  fmt::print("{} streams: {:.0f} events/s received, {:.0f} tokens/s generated\n", streams,
             static_cast<double>(load.events() - events) / wall,
             static_cast<double>(server.stats().generation_tokens - tokens) / wall);
}

void measure_idle(int streams) {
  BenchServer server(streams, 32768, std::chrono::milliseconds(10));
  {
    bench::StreamLoad warm(server.port(), 1, request(0, 10));
    OCTET_CHECK(warm.wait_until_all_stream());
  }
  const double before = resident_mib();
  bench::StreamLoad load(server.port(), streams, request(0, 32'000));
  OCTET_CHECK(load.wait_until_all_stream());
  server.hold(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  fmt::print("{} streams that wait: {:.1f} MiB more than before, the clients' own included\n", streams,
             resident_mib() - before);
}

}  // namespace

int main(int argc, char** argv) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const int streams = argc > 1 ? std::atoi(argv[1]) : 64;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 5;
  measure_rate(streams, seconds);
  measure_idle(1000);
  return 0;
}
