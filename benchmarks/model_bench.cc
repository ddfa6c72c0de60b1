// Tokens per second of the engine alone: no HTTP, no text, random token ids, greedy, prefixes not shared.
//   model_bench [MODEL] [--rows prefill:512,decode:64,streams:4x128x64] [--json]   `model_bench --help` tells the rest
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/default_model.h"
#include "benchmarks/timed_backend.h"
#include "octet/base/flags.h"
#include "octet/base/json.h"
#include "octet/base/log.h"
#include "octet/engine/replica.h"

namespace octet::bench {
namespace {

using Clock = std::chrono::steady_clock;

// What a row measures: streams that begin together, each with a prompt and tokens after it.
struct Workload {
  std::string name;
  int streams = 1, prompt = 1, tokens = 1;
  bool prefill = false;  // the prompt's rate, else that of the tokens after the first
};

// "prefill:512", "decode:64" (after one token), "streams:4x128x64" (streams x prompt x tokens).
Result<Workload> parse_workload(const std::string& text) {
  Workload row{.name = text};
  if (std::sscanf(text.c_str(), "prefill:%d", &row.prompt) == 1) {
    row.prefill = true;
  } else if (std::sscanf(text.c_str(), "decode:%d", &row.tokens) != 1 &&
             std::sscanf(text.c_str(), "streams:%dx%dx%d", &row.streams, &row.prompt, &row.tokens) != 3) {
    return fail(ErrorCode::kInvalid, "--rows {}: expected prefill:TOKENS, decode:TOKENS or streams:NxPROMPTxTOKENS",
                text);
  }
  if (row.streams < 1 || row.prompt < 1 || row.tokens < 1 || row.streams > 1024) {
    return fail(ErrorCode::kInvalid, "--rows {}: numbers of at least 1, at most 1,024 streams", text);
  }
  return row;
}

// When the tokens of every stream came.
class Arrivals {
 public:
  explicit Arrivals(int streams) : times_(static_cast<std::size_t>(streams)), left_(streams) {}

  engine::OutputSink sink(int stream) {
    return [this, stream](engine::Output&& output) {
      const auto now = Clock::now();
      const std::lock_guard lock(mutex_);
      auto& times = times_[static_cast<std::size_t>(stream)];
      times.insert(times.end(), output.tokens.size(), now);
      if (output.finish == engine::FinishReason::kNone) return;
      if (output.finish != engine::FinishReason::kLength) error_ = "a stream ended before its length: " + output.error;
      if (--left_ == 0) ended_.notify_all();
    };
  }

  // Waits for the last of them.
  const std::vector<std::vector<Clock::time_point>>& times() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return left_ == 0; });
    return times_;
  }
  const std::string& error() const { return error_; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::vector<Clock::time_point>> times_;
  int left_;
  std::string error_;
};

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

class Measurement {
 public:
  explicit Measurement(engine::Replica& replica) : replica_(replica) {}

  // Tokens per second.
  Result<double> run(const Workload& row) {
    // Prompts that share steps end one after another; until the last one has, the others go on.
    const int budget = std::max(1, replica_.engine->config().scheduler.max_step_rows - row.streams);
    const int early = row.streams == 1 ? 0 : row.streams * row.prompt / budget + 2 * row.streams;
    Arrivals arrivals(row.streams);
    const auto start = Clock::now();
    for (int i = 0; i < row.streams; ++i) {
      OCTET_TRY_VOID(submit(row.prompt, row.prefill ? 1 : row.tokens + 1 + early, arrivals.sink(i)));
    }
    const auto& times = arrivals.times();
    if (!arrivals.error().empty()) return fail(ErrorCode::kIo, "{}", arrivals.error());
    if (row.prefill) return row.streams * row.prompt / seconds(times[0][0] - start);
    // From the first token of the stream that began last: from there on every step has a token of each.
    const auto& last = *std::ranges::max_element(times, {}, [](const auto& stream) { return stream.front(); });
    const auto end = last[static_cast<std::size_t>(row.tokens)];
    const auto step_before = last[static_cast<std::size_t>(row.tokens) - 1];
    const bool all = std::ranges::all_of(times, [&](const auto& stream) { return stream.back() > step_before; });
    if (!all) return fail(ErrorCode::kIo, "{}: a stream ended before the last one had its tokens", row.name);
    return row.streams * row.tokens / seconds(end - last.front());
  }

 private:
  Result<> submit(int prompt, int tokens, engine::OutputSink sink) {
    engine::Request request;
    const auto vocabulary = static_cast<unsigned>(replica_.config.vocab_size);
    for (int i = 0; i < prompt; ++i) request.prompt.push_back(static_cast<engine::TokenId>(random_() % vocabulary));
    request.sampling = {.temperature = 0, .max_tokens = tokens, .ignore_eos = true};
    request.want_text = false;
    request.sink = std::move(sink);
    OCTET_TRY_VOID(replica_.engine->submit(std::move(request)));
    return {};
  }

  engine::Replica& replica_;
  std::mt19937 random_{1};
};

struct Settings {
  std::optional<std::string> model;
  std::string rows = "prefill:512,prefill:2048,decode:64,streams:4x128x64,streams:16x128x64", dtype = "auto",
              quantization;
  std::int64_t threads = 0, repeats = 1, kv_blocks = 1024;
  std::optional<std::int64_t> step_rows;
  bool json = false, ops = false;
};

Result<std::vector<Workload>> parse_workloads(const std::string& rows) {
  std::vector<Workload> parsed;
  for (std::size_t at = 0; at <= rows.size();) {
    const std::size_t end = std::min(rows.find(',', at), rows.size());
    OCTET_TRY(Workload row, parse_workload(rows.substr(at, end - at)));
    parsed.push_back(std::move(row));
    at = end + 1;
  }
  return parsed;
}

Result<> measure(const Settings& settings) {
  OCTET_TRY(const std::vector<Workload> rows, parse_workloads(settings.rows));
  engine::ReplicaOptions options;
  options.model = settings.model ? *settings.model : testing::default_model();
  if (options.model.empty()) return fail(ErrorCode::kNotFound, "the default model could not be fetched");
  options.skip_tokenizer = true;
  options.prefix_caching = false;
  options.dtype = settings.dtype;
  options.open.quantization = settings.quantization;
  options.threads = static_cast<int>(settings.threads);
  options.kv_blocks = settings.kv_blocks;
  if (settings.step_rows) options.max_num_batched_tokens = static_cast<std::int32_t>(*settings.step_rows);
  OpTimes times;
  if (settings.ops) {
    options.wrap_backend = [&](std::unique_ptr<ops::Backend> inner) {
      return std::make_unique<TimedBackend>(std::move(inner), times);
    };
  }
  OCTET_TRY(const std::unique_ptr<engine::Replica> replica, engine::load_replica(options));
  Measurement measurement(*replica);
  OCTET_TRY_VOID(measurement.run({.name = "warm-up", .tokens = 8}));
  const std::int64_t step_rows = replica->engine->config().scheduler.max_step_rows;
  Json told = Json::array();
  for (const Workload& row : rows) {
    std::vector<double> rates;
    OCTET_TRY_VOID(measurement.run(row));  // blocks of the cache take their memory when they are first written
    times.clear();
    for (int i = 0; i < settings.repeats; ++i) {
      OCTET_TRY(const double rate, measurement.run(row));
      rates.push_back(rate);
    }
    std::ranges::sort(rates);
    const double median = rates[rates.size() / 2];
    told.push_back({{"row", row.name}, {"tokens_per_second", median}, {"rates", rates}});
    if (settings.json) continue;
    fmt::print("{:<24}{:9.1f} tokens/s ({:.1f} to {:.1f})\n", row.name, median, rates.front(), rates.back());
    if (settings.ops)
      fmt::print("{}", times.text(row.prefill ? std::min<std::int64_t>(row.prompt, step_rows) : row.streams));
  }
  if (settings.json) {
    fmt::print("{}\n", dump_json({{"model", options.model.string()},
                                  {"backend", replica->backend},
                                  {"weight_bytes", replica->weight_bytes},
                                  {"step_rows", step_rows},
                                  {"rows", told}}));
  }
  return {};
}

int run(int argc, char** argv) {
  Settings settings;
  constexpr std::string_view group = "what is measured";
  const std::vector<Flag> flags = {
      {.names = "MODEL",
       .group = group,
       .target = &settings.model,
       .help = "folder or GGUF file",
       .fallback = "the default model"},
      {.names = "--rows",
       .group = group,
       .target = &settings.rows,
       .help = "prefill:TOKENS, decode:TOKENS (one stream, after one token), streams:NxPROMPTxTOKENS (decode of N)"},
      {.names = "--repeats",
       .group = group,
       .target = &settings.repeats,
       .help = "of each row, of which the median counts",
       .min = 1,
       .max = 1000},
      {.names = "--threads",
       .group = group,
       .target = &settings.threads,
       .help = "of the back end; 0: what the process may use",
       .min = 0,
       .max = 1024},
      {.names = "--dtype", .group = group, .target = &settings.dtype, .help = "as octet serve's"},
      {.names = "--quantization", .group = group, .target = &settings.quantization, .help = "as octet serve's"},
      {.names = "--max-num-batched-tokens",
       .group = group,
       .target = &settings.step_rows,
       .help = "as octet serve's",
       .fallback = "chosen at warm-up",
       .min = 1,
       .max = 1 << 20},
      {.names = "--kv-blocks",
       .group = group,
       .target = &settings.kv_blocks,
       .help = "size of the KV pool, in blocks of 16 tokens",
       .min = 1,
       .max = 1 << 24},
      {.names = "--ops",
       .group = group,
       .target = &settings.ops,
       .help = "show where the time goes: each op with its calls, and how fast it went through its weights"},
      {.names = "--json", .group = group, .target = &settings.json, .help = "one JSON object in place of lines"},
  };
  FlagTable table("model_bench", "tokens per second of the engine alone", flags);
  if (const auto status = parse_command(table, argc, argv)) return *status;
  if (auto measured = measure(settings); !measured) {
    fmt::print(stderr, "model_bench: {}\n", measured.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace octet::bench

int main(int argc, char** argv) { return octet::bench::run(argc, argv); }
