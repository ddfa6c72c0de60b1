// `octet bench latency`: how long one batch takes in an engine of this process.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <limits>

#include "apps/octet/bench_commands.h"
#include "apps/octet/bench_engine.h"
#include "apps/octet/pull_signals.h"
#include "apps/octet/vllm_flags.h"
#include "octet/base/clock.h"
#include "octet/bench/offline_batch.h"
#include "octet/bench/offline_latency.h"

namespace {

namespace bench = octet::bench;
using octet::Flag;

constexpr std::string_view kCommand = "octet bench latency";
constexpr double kMaxInt = std::numeric_limits<std::int32_t>::max();

struct LatencyFlags : BenchEngineFlags {
  std::int64_t input_len = 32, output_len = 128, batch_size = 8, choices = 1, warm_ups = 10, iterations = 30;
  bool disable_detokenize = false;
};

std::vector<Flag> latency_rows(LatencyFlags& f) {
  constexpr std::string_view group = "batch";
  return {
      {.names = "--input-len",
       .group = group,
       .target = &f.input_len,
       .help = "tokens of a prompt",
       .min = 1,
       .max = kMaxInt},
      {.names = "--output-len",
       .group = group,
       .target = &f.output_len,
       .help = "tokens of an answer",
       .min = 1,
       .max = kMaxInt},
      {.names = "--batch-size",
       .group = group,
       .target = &f.batch_size,
       .help = "requests at once",
       .min = 1,
       .max = 1 << 20},
      {.names = "--n", .group = group, .target = &f.choices, .help = "answers to each request", .min = 1, .max = 4096},
      {.names = "--num-iters-warmup",
       .group = group,
       .target = &f.warm_ups,
       .help = "batches before those that count",
       .min = 0,
       .max = 1e9},
      {.names = "--num-iters", .group = group, .target = &f.iterations, .help = "batches", .min = 1, .max = 1e9},
      {.names = "--disable-detokenize",
       .group = group,
       .target = &f.disable_detokenize,
       .help = "make no text of the tokens"},
  };
}

constexpr Flag kOthers[] = {
    octet::vllm_flags::later("--use-beam-search", octet::vllm_flags::kSwitch, "beam search"),
    octet::vllm_flags::later("--profile", octet::vllm_flags::kSwitch, "a profile of the engine"),
};

constexpr const char* kEpilog =
    R"text(Prompts are random tokens, the same in each batch; answers are greedy and have their full length. The prefix cache is off
unless --enable-prefix-caching is given. Ctrl-C ends the run and reports the batches there are.

examples
  octet bench latency smollm2
  octet bench latency DIR --input-len 1024 --output-len 128 --batch-size 1 --output-json latency.json
)text";

// In place on a terminal, else a line now and then.
class ProgressLine {
 public:
  void show(const bench::LatencyProgress& now) {
    constexpr std::int64_t kBetweenLinesNs = 10'000'000'000;
    const std::int64_t ns = octet::SteadyClock::instance().now_ns();
    if (now.iterations == 0 || (!terminal_ && ns - shown_ns_ < kBetweenLinesNs)) return;
    shown_ns_ = ns;
    const std::string last = now.seconds > 0 ? fmt::format(", the last took {:.3f} s", now.seconds) : "";
    fmt::print(stderr, "{}{} {} of {}{}{}", terminal_ ? "\r\033[K" : "", now.warming_up ? "warm-up" : "batch", now.done,
               now.iterations, last, terminal_ ? "" : "\n");
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::int64_t shown_ns_ = octet::SteadyClock::instance().now_ns();
};

int measure(const LatencyFlags& flags, octet::engine::Engine& engine) {
  const std::int64_t sequences = flags.batch_size * flags.choices;
  if (const std::int64_t places = bench::places_for(engine, sequences); places < sequences)
    fmt::print(stderr, "{}: {} of the {} sequences run at once, the others wait for a place\n", kCommand, places,
               sequences);
  const octet::hub::SignalGuard signals;
  ProgressLine line;
  const auto result =
      bench::measure_latency(engine, {.input_len = static_cast<std::int32_t>(flags.input_len),
                                      .output_len = static_cast<std::int32_t>(flags.output_len),
                                      .batch_size = static_cast<std::int32_t>(flags.batch_size),
                                      .choices = static_cast<std::int32_t>(flags.choices),
                                      .warm_ups = flags.warm_ups,
                                      .iterations = flags.iterations,
                                      .detokenize = !flags.disable_detokenize,
                                      .seed = static_cast<std::uint64_t>(flags.seed),
                                      .stopped = [] { return octet::hub::stop_signal != 0; },
                                      .on_progress = [&](const bench::LatencyProgress& now) { line.show(now); }});
  line.clear();
  if (!result) return bench_failure(kCommand, result.error());
  if (result->interrupted)
    fmt::print(stderr, "{}: interrupted, {} of {} batches were measured\n", kCommand, result->seconds.size(),
               flags.iterations);
  if (!result->seconds.empty()) {
    const auto written = write_figures(flags, latency_text(*result), latency_json(*result));
    if (!written) return bench_failure(kCommand, written.error());
  }
  return result->interrupted ? 128 + octet::hub::stop_signal : 0;
}

}  // namespace

int bench_latency_command(int argc, char** argv) {
  LatencyFlags flags;
  flags.prefix_caching = false;  // every batch has the same prompts
  octet::FlagTable table = bench_engine_table(std::string(kCommand), "Times batches in an engine of this process.",
                                              latency_rows(flags), flags, kOthers);
  table.set_epilog(kEpilog);
  if (const auto status = octet::parse_command(table, argc, argv)) return *status;
  const auto replica = load_bench_engine(kCommand, flags, flags.batch_size * flags.choices);
  if (!replica) return replica.error();
  return measure(flags, *(*replica)->engine);
}
