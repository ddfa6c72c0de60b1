// `octet bench throughput`: how much an engine of this process gets done when all requests are there at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "apps/octet/bench_commands.h"
#include "apps/octet/bench_engine.h"
#include "apps/octet/bench_progress.h"
#include "apps/octet/pull_signals.h"
#include "apps/octet/vllm_flags.h"
#include "apps/octet/workload_flags.h"
#include "octet/bench/offline_throughput.h"

namespace {

namespace bench = octet::bench;
using octet::ErrorCode;
using octet::fail;
using octet::Flag;
using octet::Result;

constexpr std::string_view kCommand = "octet bench throughput";

struct ThroughputFlags : BenchEngineFlags {
  bench::WorkloadOptions workload;
  std::optional<std::string> dataset;
  std::int64_t choices = 1, warm_ups = 0, prefix_len = 0;
  bool disable_detokenize = false;
};

// Of the flags that say what is sent, those that vllm bench throughput has.
constexpr std::string_view kPromptFlags[] = {"--num-prompts",
                                             "--input-len",
                                             "--output-len",
                                             "--random-input-len",
                                             "--random-output-len",
                                             "--random-range-ratio",
                                             "--random-prefix-len",
                                             "--prefix-repetition-prefix-len",
                                             "--prefix-repetition-suffix-len",
                                             "--prefix-repetition-num-prefixes",
                                             "--prefix-repetition-output-len",
                                             "--dataset-path",
                                             "--no-oversample"};

std::vector<Flag> throughput_rows(ThroughputFlags& f) {
  constexpr std::string_view group = "prompts";
  std::vector<Flag> rows = {
      {.names = "--dataset-name",
       .group = group,
       .target = &f.dataset,
       .help = "random, sharegpt or prefix_repetition",
       .fallback = "sharegpt with --dataset-path, else random"},
      {.names = "--n", .group = group, .target = &f.choices, .help = "answers to each prompt", .min = 1, .max = 4096},
      {.names = "--num-warmups",
       .group = group,
       .target = &f.warm_ups,
       .help = "requests before the clock starts",
       .min = 0,
       .max = 1e6},
      {.names = "--disable-detokenize",
       .group = group,
       .target = &f.disable_detokenize,
       .help = "make no text of the tokens"},
      {.names = "--prefix-len",
       .group = group,
       .target = &f.prefix_len,
       .help = "tokens that all random prompts begin with, as --random-prefix-len",
       .min = 0,
       .max = 1e8},
  };
  for (const Flag& row : workload_flags(f.workload)) {
    if (std::ranges::find(kPromptFlags, row.names) != std::end(kPromptFlags)) rows.push_back(row);
  }
  return rows;
}

using octet::vllm_flags::accepted;
using octet::vllm_flags::kSwitch;
using octet::vllm_flags::kValue;
using octet::vllm_flags::later;

constexpr Flag kOthers[] = {
    accepted("--async-engine", kSwitch, "the engine runs on a thread of its own in any case"),
    accepted("--prequeue-requests", kSwitch, "all requests are handed over before the first step in any case"),
    later("--backend", kValue, "other engines", "vllm"),
    later("--hf-max-batch-size", kValue, "other engines"),
    later("--hf-enable-torch-compile", kSwitch, "other engines"),
    later("--profile", kSwitch, "a profile of the engine"),
    later("--lora-path", kValue, "LoRA adapters"),
    later("--lora-assignment", kValue, "LoRA adapters", "random"),
    later("--enable-multimodal-chat", kSwitch, "images and sound"),
    later("--custom-output-len", kValue, "sound"),
    later("--asr-max-audio-len-sec", kValue, "sound", "inf"),
    later("--asr-min-audio-len-sec", kValue, "sound", "0.0"),
    later("--random-batch-size", kValue, "embeddings", "1"),
    later("--no-reranker", kSwitch, "rerankers"),
    later("--random-mm-base-items-per-request", kValue, "images", "1"),
    later("--random-mm-num-mm-items-range-ratio", kValue, "images", "0.0"),
    later("--random-mm-limit-mm-per-prompt", kValue, "images", "{'image': 255, 'video': 1}"),
    later("--random-mm-bucket-config", kValue, "images",
          "{(256, 256, 1): 0.5, (720, 1280, 1): 0.5, (720, 1280, 16): 0.0}"),
    later("--hf-subset", kValue, "datasets of the hub"),
    later("--hf-split", kValue, "datasets of the hub"),
    later("--hf-name", kValue, "datasets of the hub"),
};

constexpr const char* kEpilog =
    R"text(Answers are greedy and have their full length. What a prompt takes counts once, whatever --n says. Ctrl-C ends the run
and reports what there is: requests that were done, and tokens of all.

examples
  octet bench throughput smollm2 --num-prompts 64 --input-len 256 --output-len 64
  octet bench throughput DIR --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --output-json throughput.json
)text";

// What can be told before the model is loaded; completes the options of the prompts.
Result<> check_flags(ThroughputFlags& flags) {
  bench::WorkloadOptions& workload = flags.workload;
  workload.dataset = flags.dataset.value_or(workload.path ? "sharegpt" : "random");
  workload.seed = flags.seed;
  const bool is_random = workload.dataset == "random", is_file = workload.dataset == "sharegpt";
  if (!is_random && !is_file && workload.dataset != "prefix_repetition")
    return fail(ErrorCode::kUnsupported, "--dataset-name {}: expected random, sharegpt or prefix_repetition",
                workload.dataset);
  if (is_file && !workload.path)
    return fail(ErrorCode::kInvalid, "--dataset-name sharegpt needs --dataset-path: a file in the form of ShareGPT");
  if (!is_file && workload.path)
    return fail(ErrorCode::kInvalid, "--dataset-path {}: --dataset-name {} reads no file", *workload.path,
                workload.dataset);
  std::error_code ignored;
  if (workload.path && !std::filesystem::exists(*workload.path, ignored))
    return fail(ErrorCode::kNotFound, "--dataset-path {}: there is no such file", *workload.path);
  if (flags.skip_tokenizer)
    return fail(ErrorCode::kInvalid, "--skip-tokenizer-init: prompts are text, which takes a tokenizer");
  if (flags.prefix_len == 0) return {};
  if (!is_random) return fail(ErrorCode::kInvalid, "--prefix-len goes with --dataset-name random");
  if (workload.random_prefix_len != 0 && workload.random_prefix_len != flags.prefix_len)
    return fail(ErrorCode::kInvalid, "--prefix-len {} and --random-prefix-len {} differ", flags.prefix_len,
                workload.random_prefix_len);
  workload.random_prefix_len = flags.prefix_len;
  return {};
}

Result<std::vector<bench::OfflinePrompt>> prompts_of(const ThroughputFlags& flags,
                                                     const octet::text::Tokenizer& tokenizer) {
  OCTET_TRY(const bench::Workload workload, bench::make_workload(flags.workload, &tokenizer));
  if (workload.conversations.empty())
    return fail(ErrorCode::kInvalid, "--dataset-name {}: no prompt of it can be used", flags.workload.dataset);
  if (!workload.note.empty()) fmt::print(stderr, "{}: {}\n", kCommand, workload.note);
  return bench::offline_prompts(workload, tokenizer);
}

int measure(const ThroughputFlags& flags, octet::engine::Replica& replica) {
  const auto prompts = prompts_of(flags, *replica.tokenizer);
  if (!prompts) return bench_failure(kCommand, prompts.error());
  const octet::hub::SignalGuard signals;
  BenchProgress progress(flags.workload.dataset, true);
  const auto result =
      bench::measure_throughput(*replica.engine, *prompts,
                                {.name = flags.workload.dataset,
                                 .choices = static_cast<std::int32_t>(flags.choices),
                                 .warm_ups = flags.warm_ups,
                                 .detokenize = !flags.disable_detokenize,
                                 .stopped = [] { return octet::hub::stop_signal != 0; },
                                 .on_progress = [&](const bench::Progress& now) { progress.show(now); }});
  progress.clear();
  if (!result) return bench_failure(kCommand, result.error());
  if (result->interrupted)
    fmt::print(stderr, "{}: interrupted, {} of {} requests were done\n", kCommand, result->completed, prompts->size());
  if (result->output_tokens > 0) {
    const auto written = write_figures(flags, throughput_text(*result), throughput_json(*result));
    if (!written) return bench_failure(kCommand, written.error());
  }
  return result->interrupted ? 128 + octet::hub::stop_signal : 0;
}

}  // namespace

int bench_throughput_command(int argc, char** argv) {
  ThroughputFlags flags;
  octet::FlagTable table =
      bench_engine_table(std::string(kCommand), "Times many requests at once in an engine of this process.",
                         throughput_rows(flags), flags, kOthers);
  table.set_epilog(kEpilog);
  if (const auto status = octet::parse_command(table, argc, argv)) return *status;
  if (const auto checked = check_flags(flags); !checked) return bench_failure(kCommand, checked.error(), 2);
  const std::int64_t requests = std::max(flags.workload.num_prompts, flags.warm_ups);
  const auto replica = load_bench_engine(kCommand, flags, requests * flags.choices);
  if (!replica) return replica.error();
  return measure(flags, **replica);
}
