// Workloads by name: what `vllm bench` calls datasets, and the presets of two deployments.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/bench/workload.h"
#include "octet/text/tokenizer.h"

namespace octet::bench {

struct WorkloadOptions {
  std::string dataset = "random";
  std::optional<std::string> path;
  std::int64_t seed = 0, num_prompts = 1000;
  bool no_oversample = false, disable_shuffle = false;
  std::optional<std::int64_t> input_len, output_len;  // in place of what the dataset has under its own name

  std::int64_t random_input_len = 1024, random_output_len = 128, random_prefix_len = 0;
  std::string random_range_ratio = "0.0";  // or {"input": 0.3, "output": 0.5}
  std::optional<std::int64_t> sharegpt_output_len;
  std::int64_t custom_output_len = 256;  // -1: what each line says
  // What a prompt of custom becomes before it is sent, as by a chat template; empty: nothing.
  std::function<Result<std::string>(std::string prompt)> custom_prompt;
  std::int64_t prefix_len = 256, suffix_len = 256, num_prefixes = 10, prefix_output_len = 128;
  std::int64_t trace_chunk = 16;  // tokens that one hash stands for
  double trace_seconds = 1;       // of a unit of time stamps
  std::string trace_timestamp = "timestamp", trace_input = "input_length", trace_output = "output_length",
              trace_hashes = "hash_ids";
  std::optional<bool> self_timed;  // of traces: send at their times; unset: yes
};

// Errors name the flag, or the file, its line and key. A flag that the dataset has no use for is one, too.
Result<Workload> make_workload(const WorkloadOptions& options, const text::Tokenizer* tokenizer);

struct PresetOptions {
  std::optional<std::int64_t> input_len, output_len, turns, users;
  std::int64_t seed = 0;
};

// A workload with the load that it is meant for.
struct Preset {
  std::string_view name, summary;
  std::string_view concurrency;  // as --concurrency takes it
  std::string_view slo;          // as --slo takes it; empty: none
  Result<Workload> (*make)(const PresetOptions& options, const text::Tokenizer* tokenizer);
};
const std::vector<Preset>& presets();
const Preset* find_preset(std::string_view name);

// Whether each turn fits a context of so many tokens; the error names both lengths.
Result<> check_context(const Workload& workload, std::int64_t max_model_len);

}  // namespace octet::bench
