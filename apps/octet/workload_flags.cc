#include "apps/octet/workload_flags.h"

#include <algorithm>

using octet::Flag;
using octet::bench::WorkloadOptions;

namespace {

constexpr double kMostTokens = 1e8;

std::vector<Flag> made_flags(WorkloadOptions& o) {
  constexpr std::string_view group = "made prompts";
  return {
      {.names = "--random-input-len",
       .group = group,
       .target = &o.random_input_len,
       .help = "tokens of a prompt",
       .min = 1,
       .max = kMostTokens},
      {.names = "--random-output-len",
       .group = group,
       .target = &o.random_output_len,
       .help = "most tokens of an answer",
       .min = 1,
       .max = kMostTokens},
      {.names = "--random-range-ratio",
       .group = group,
       .target = &o.random_range_ratio,
       .help = "lengths are drawn from 1 - r to 1 + r times these; a number, or {\"input\": 0.3, \"output\": 0.5}"},
      {.names = "--random-prefix-len",
       .group = group,
       .target = &o.random_prefix_len,
       .help = "tokens that all prompts begin with",
       .min = 0,
       .max = kMostTokens},
      {.names = "--prefix-repetition-prefix-len",
       .group = group,
       .target = &o.prefix_len,
       .help = "tokens of a shared prefix",
       .min = 0,
       .max = kMostTokens},
      {.names = "--prefix-repetition-suffix-len",
       .group = group,
       .target = &o.suffix_len,
       .help = "tokens of a prompt's own",
       .min = 1,
       .max = kMostTokens},
      {.names = "--prefix-repetition-num-prefixes",
       .group = group,
       .target = &o.num_prefixes,
       .help = "different prefixes",
       .min = 1,
       .max = kMostTokens},
      {.names = "--prefix-repetition-output-len",
       .group = group,
       .target = &o.prefix_output_len,
       .help = "most tokens of an answer",
       .min = 1,
       .max = kMostTokens},
  };
}

std::vector<Flag> file_flags(WorkloadOptions& o) {
  constexpr std::string_view group = "prompts of a file";
  return {
      {.names = "--dataset-path",
       .group = group,
       .target = &o.path,
       .help = "file of sharegpt (JSON), custom or timed_trace (JSON lines)"},
      {.names = "--no-oversample",
       .group = group,
       .target = &o.no_oversample,
       .help = "send no prompt twice where the file has fewer than asked"},
      {.names = "--disable-shuffle",
       .group = group,
       .target = &o.disable_shuffle,
       .help = "keep the order of the file"},
      {.names = "--sharegpt-output-len",
       .group = group,
       .target = &o.sharegpt_output_len,
       .help = "most tokens of an answer",
       .fallback = "as long as the one in the file",
       .min = 1,
       .max = kMostTokens},
      {.names = "--custom-output-len",
       .group = group,
       .target = &o.custom_output_len,
       .help = "most tokens of an answer; -1: each line's output_tokens",
       .min = -1,
       .max = kMostTokens},
      {.names = "--self-timed",
       .group = group,
       .target = &o.self_timed,
       .help = "send at the times of a trace, as is done anyway; --no-self-timed: as the flags of the load say"},
      {.names = "--timed-trace-chunk-hash-size",
       .group = group,
       .target = &o.trace_chunk,
       .help = "tokens that one hash of a trace stands for",
       .min = 1,
       .max = kMostTokens},
      {.names = "--timed-trace-sec-multiplier",
       .group = group,
       .target = &o.trace_seconds,
       .help = "seconds of a unit of its time stamps",
       .min = 1e-12,
       .max = 1e9},
      {.names = "--timed-trace-label-timestamp",
       .group = group,
       .target = &o.trace_timestamp,
       .help = "key of the time stamp"},
      {.names = "--timed-trace-label-input-length",
       .group = group,
       .target = &o.trace_input,
       .help = "key of the prompt's length"},
      {.names = "--timed-trace-label-output-length",
       .group = group,
       .target = &o.trace_output,
       .help = "key of the answer's length"},
      {.names = "--timed-trace-label-hash-ids",
       .group = group,
       .target = &o.trace_hashes,
       .help = "key of the hashes of its blocks"},
  };
}

}  // namespace

std::vector<Flag> workload_flags(WorkloadOptions& o) {
  constexpr std::string_view group = "prompts";
  std::vector<Flag> flags = {
      {.names = "--dataset-name",
       .group = group,
       .target = &o.dataset,
       .help = "what to send: random, sharegpt, custom, prefix_repetition or timed_trace"},
      {.names = "--num-prompts",
       .group = group,
       .target = &o.num_prompts,
       .help = "requests of a run",
       .min = 1,
       .max = 1e8},
      {.names = "--seed", .group = group, .target = &o.seed, .help = "of prompts, their order and times of arrival"},
      {.names = "--input-len",
       .group = group,
       .target = &o.input_len,
       .help = "tokens of a prompt, whatever the dataset's own flag says",
       .fallback = "none",
       .min = 1,
       .max = kMostTokens},
      {.names = "--output-len",
       .group = group,
       .target = &o.output_len,
       .help = "most tokens of an answer, likewise",
       .fallback = "none",
       .min = 1,
       .max = kMostTokens},
  };
  for (Flag& flag : made_flags(o)) flags.push_back(flag);
  for (Flag& flag : file_flags(o)) flags.push_back(flag);
  return flags;
}

octet::Result<> check_beside_preset(const octet::FlagTable& table, WorkloadOptions& options) {
  constexpr std::string_view heard[] = {"--seed", "--input-len", "--output-len"};
  for (const Flag& flag : workload_flags(options)) {
    const std::string_view name = flag.names.substr(0, flag.names.find(' '));
    if (table.given(name) && std::ranges::find(heard, name) == std::end(heard))
      return octet::fail(octet::ErrorCode::kInvalid,
                         "{} has no effect beside --preset, which has --users, --turns, --input-len and --output-len",
                         name);
  }
  return {};
}
