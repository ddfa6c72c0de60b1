// The flags of a model and its engine: what `octet serve` and the measurements in this process share. vLLM's names.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/octet/load_flags.h"
#include "octet/base/error.h"
#include "octet/base/flags.h"
#include "octet/engine/replica.h"

struct EngineFlags {
  std::optional<std::string> model, model_flag, tokenizer;
  std::optional<std::string> revision, hf_token, download_dir;
  std::optional<std::string> max_model_len, distributed_backend;
  std::string dtype = "auto", policy = "fcfs";
  LoadFlags load;
  std::int64_t max_num_seqs = 64, block_size = 16, seed = 0;
  std::optional<std::int64_t> threads;
  std::int64_t tensor_parallel = 1, pipeline_parallel = 1, data_parallel = 1;
  std::optional<std::int64_t> max_batched_tokens, kv_cache_bytes;
  double memory_share = 0.5;
  bool prefix_caching = true, skip_tokenizer = false, expert_parallel = false, chunked_prefill = true;
};

// The targets are fields of flags, which must outlive the table.
std::vector<octet::Flag> model_source_rows(EngineFlags& flags);   // which model, which tokenizer
std::vector<octet::Flag> model_type_rows(EngineFlags& flags);     // type of activations, context, seed
std::vector<octet::Flag> step_and_file_rows(EngineFlags& flags);  // memory, scheduling, layout, how files are read

// `octet serve smollm2`, `octet serve ORG/NAME`: where no file or folder is called so, a name stands for a model, which
// is fetched where it is not there yet. Puts paths in place of names; true: MODEL was one.
octet::Result<bool> resolve_names(EngineFlags& flags);
// Checks what the table cannot; errors name the flag.
octet::Result<octet::engine::ReplicaOptions> replica_options(const EngineFlags& flags);
