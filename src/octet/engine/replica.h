// A replica from a path: checkpoint, tokenizer, template, model, KV pool, executor and engine, in the order that finds
// faults early.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "octet/base/error.h"
#include "octet/engine/engine.h"
#include "octet/formats/checkpoint.h"
#include "octet/formats/model_config.h"
#include "octet/ops/backend.h"
#include "octet/text/chat_templates.h"
#include "octet/text/tokenizer.h"

namespace octet::engine {

struct ReplicaOptions {
  std::filesystem::path model;
  std::optional<std::filesystem::path> tokenizer;  // file or folder; else the model's own
  bool skip_tokenizer = false;                     // token ids in and out only
  std::optional<std::string> chat_template;        // Jinja source; else the model's own
  formats::OpenOptions open;                       // how the model's files are read
  std::string dtype = "auto";                      // auto, float32, bfloat16, float16
  std::string kv_cache_dtype = "auto";             // auto (as the checkpoint declares), fp8, or what dtype comes to
  int threads = 0;                                 // 0: what the process may use
  std::optional<std::int64_t> kv_cache_bytes;      // else a share of the free memory
  double memory_share = 0.5;                       // of the memory free under the cgroup's limit: model and KV pool
  std::optional<std::int64_t> kv_blocks;           // the pool's size in blocks, instead
  std::int32_t block_size = 16;
  std::optional<std::int32_t> max_model_len;           // else the model's, or what the pool holds
  std::int32_t max_num_seqs = 64;                      // at most max_num_batched_tokens of them run
  std::optional<std::int32_t> max_num_active_seqs;     // else as many
  std::optional<std::int32_t> max_num_batched_tokens;  // else chosen at warm-up so that a step lasts at most 250 ms
  std::int32_t long_prefill_threshold = 0;             // most tokens of one prompt in a step; 0: no limit
  double watermark = 0;                                // share of the blocks that stay free at admission
  int steps_in_flight = 1;                             // 2: a step is planned while another runs
  bool prefix_caching = true;
  SchedulerConfig::Policy policy = SchedulerConfig::Policy::kFcfs;
  std::int32_t max_waiting = 1024;
  std::optional<std::int32_t> max_admitted;       // sequences that run and wait, instead
  std::optional<std::int64_t> max_queued_tokens;  // as in EngineConfig
  std::int32_t max_logprobs = 20;  // the most that a request may ask for; -1: all tokens of the vocabulary
  LogprobsMode logprobs_mode = LogprobsMode::kRawLogprobs;
  std::uint64_t seed = 0;
  HistogramBuckets histogram_buckets;
  std::function<void(std::string_view phase, std::int64_t done, std::int64_t total)> progress;  // bytes while loading
  std::function<std::unique_ptr<ops::Backend>(std::unique_ptr<ops::Backend>)> wrap_backend;     // for measurements
};

struct Replica {
  formats::ModelConfig config;
  formats::GenerationDefaults generation;
  std::unique_ptr<text::Tokenizer> tokenizer;  // null with skip_tokenizer
  text::ChatTemplates chat_templates;          // none: chat is refused with a reason
  Json template_variables = Json::object();    // bos_token and the like, for templates
  Json tokenizer_info = Json::object();        // as describe_tokenizer() says
  std::int32_t max_model_len = 0;
  std::int64_t kv_tokens = 0;  // the pool's size
  std::int64_t weight_bytes = 0, kv_bytes = 0;
  double memory_share = 0;              // as in ReplicaOptions
  std::string backend;                  // "cpu/avx2, 2 threads"
  std::string dtype;                    // of activations
  std::string cache_dtype;              // of the KV cache
  std::string kv_cache_dtype = "auto";  // as in ReplicaOptions
  std::unique_ptr<Engine> engine;       // declared last: it uses the tokenizer
};

// Errors name the file, field or flag. Ends with a real forward pass, so that a replica that was loaded can serve.
Result<std::unique_ptr<Replica>> load_replica(const ReplicaOptions& options);

}  // namespace octet::engine
