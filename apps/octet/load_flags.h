// The flags of `octet serve` about how a model's files are read, and about the finer points of memory and steps.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/flags.h"
#include "octet/engine/replica.h"

struct LoadFlags {
  std::string load_format = "auto", generation_config = "auto", tokenizer_mode = "auto", kv_cache_dtype = "auto";
  std::optional<std::string> hf_config_path, hf_overrides, generation_overrides, load_strategy, code_revision,
      tokenizer_revision, quantization;
  std::vector<std::string> ignore_patterns = {"original/**/*"};
  std::optional<std::int64_t> blocks, scheduled_tokens, active_seqs;
  std::int64_t long_prefill_threshold = 0;
  double watermark = 0;
  bool async_scheduling = false, disable_sliding_window = false;
};

std::vector<octet::Flag> load_flag_rows(LoadFlags& flags);
// Errors name the flag.
octet::Result<> apply_load_flags(const LoadFlags& flags, octet::engine::ReplicaOptions& replica);
