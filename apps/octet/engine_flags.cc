#include "apps/octet/engine_flags.h"

#include <limits>

#include "apps/octet/model_name.h"

using octet::ErrorCode;
using octet::fail;
using octet::Flag;
using octet::Result;

namespace {

constexpr double kMaxInt = std::numeric_limits<std::int32_t>::max();

std::vector<Flag> memory_rows(EngineFlags& f) {
  constexpr std::string_view group = "memory and scheduling";
  return {
      {.names = "--threads",
       .group = group,
       .target = &f.threads,
       .help = "threads of the model",
       .fallback = "the cores that the process may use",
       .min = 1,
       .max = 4096},
      {.names = "--gpu-memory-utilization --device-memory-utilization",
       .group = group,
       .target = &f.memory_share,
       .help = "share of the memory that is free under the cgroup's limit that weights and KV cache may take",
       .min = 0.01,
       .max = 1},
      {.names = "--kv-cache-memory-bytes",
       .group = group,
       .target = &f.kv_cache_bytes,
       .help = "size of the KV cache",
       .fallback = "from --gpu-memory-utilization",
       .min = 1,
       .max = 1e15},
      {.names = "--block-size",
       .group = group,
       .target = &f.block_size,
       .help = "tokens of a KV block",
       .min = 1,
       .max = 256},
      {.names = "--max-num-seqs",
       .group = group,
       .target = &f.max_num_seqs,
       .help = "sequences that run at once",
       .min = 1,
       .max = 65536},
      {.names = "--max-num-batched-tokens",
       .group = group,
       .target = &f.max_batched_tokens,
       .help = "tokens of one step",
       .fallback = "chosen so that a step lasts at most 250 ms",
       .min = 1,
       .max = kMaxInt},
      {.names = "--enable-prefix-caching",
       .group = group,
       .target = &f.prefix_caching,
       .help = "keep the KV of prompts for requests that begin alike"},
      {.names = "--enable-chunked-prefill",
       .group = group,
       .target = &f.chunked_prefill,
       .help = "long prompts are spread over steps; always on"},
      {.names = "--scheduling-policy",
       .group = group,
       .target = &f.policy,
       .help = "who is next: first come, or lowest priority value",
       .choices = "fcfs,priority"},
  };
}

std::vector<Flag> layout_rows(EngineFlags& f) {
  constexpr std::string_view group = "layout";
  return {
      {.names = "--tensor-parallel-size -tp",
       .group = group,
       .target = &f.tensor_parallel,
       .help = "ranks that share each layer; only 1 is built",
       .min = 1,
       .max = 4096},
      {.names = "--pipeline-parallel-size -pp",
       .group = group,
       .target = &f.pipeline_parallel,
       .help = "groups of layers on ranks of their own; only 1 is built",
       .min = 1,
       .max = 4096},
      {.names = "--data-parallel-size -dp",
       .group = group,
       .target = &f.data_parallel,
       .help = "replicas of the model; only 1 is built",
       .min = 1,
       .max = 4096},
      {.names = "--enable-expert-parallel -ep",
       .group = group,
       .target = &f.expert_parallel,
       .help = "experts are divided over the ranks; no effect with one rank"},
      {.names = "--distributed-executor-backend",
       .group = group,
       .target = &f.distributed_backend,
       .help = "how ranks are started; no effect with one rank",
       .choices = "mp,uni,ray,external_launcher"},
  };
}

Result<> check_layout(const EngineFlags& f) {
  const std::pair<std::string_view, std::int64_t> sizes[] = {{"--tensor-parallel-size", f.tensor_parallel},
                                                             {"--pipeline-parallel-size", f.pipeline_parallel},
                                                             {"--data-parallel-size", f.data_parallel}};
  for (const auto& [name, size] : sizes) {
    if (size != 1) return fail(ErrorCode::kUnsupported, "{} {}: this build serves on one rank only", name, size);
  }
  if (!f.chunked_prefill) {
    return fail(ErrorCode::kUnsupported, "--no-enable-chunked-prefill: prefill is always chunked");
  }
  return {};
}

Result<std::optional<std::int32_t>> context_length(const std::optional<std::string>& value) {
  if (!value || *value == "auto" || *value == "-1") return std::nullopt;
  const auto size = octet::parse_size(*value);
  if (!size) return within("--max-model-len", size.error());
  if (*size < 1 || *size > std::numeric_limits<std::int32_t>::max()) {
    return fail(ErrorCode::kInvalid, "--max-model-len {}: expected 1 to {}, or auto", *value,
                std::numeric_limits<std::int32_t>::max());
  }
  return static_cast<std::int32_t>(*size);
}

std::string dtype_name(const std::string& name) {
  return name == "float" ? "float32" : name == "half" ? "float16" : name;
}

}  // namespace

std::vector<Flag> model_source_rows(EngineFlags& f) {
  constexpr std::string_view group = "model";
  return {
      {.names = "MODEL",
       .group = group,
       .target = &f.model,
       .help = "folder with config.json, a GGUF file, ORG/NAME[:Q4_K_M] of the hub, or smollm2"},
      {.names = "--model", .group = group, .target = &f.model_flag, .help = "the same as MODEL"},
      {.names = "--revision",
       .group = group,
       .target = &f.revision,
       .help = "branch, tag or commit on the hub",
       .fallback = "main"},
      {.names = "--hf-token",
       .group = group,
       .target = &f.hf_token,
       .help = "of the hub, for gated and private models",
       .fallback = "HF_TOKEN or the file HF_HOME/token"},
      {.names = "--download-dir",
       .group = group,
       .target = &f.download_dir,
       .help = "the hub's cache",
       .fallback = "HF_HUB_CACHE, HF_HOME/hub or ~/.cache/huggingface/hub"},
      {.names = "--tokenizer",
       .group = group,
       .target = &f.tokenizer,
       .help =
           "a file (tokenizer.json, tokenizer.model, tekken.json, *.tiktoken, *.gguf), a folder with one, or ORG/NAME "
           "of the hub",
       .fallback = "the model's own"},
      {.names = "--skip-tokenizer-init",
       .group = group,
       .target = &f.skip_tokenizer,
       .help = "serve token ids only, without a tokenizer"},
  };
}

std::vector<Flag> model_type_rows(EngineFlags& f) {
  constexpr std::string_view group = "model";
  return {
      {.names = "--dtype",
       .group = group,
       .target = &f.dtype,
       .help = "type of activations and of the KV cache",
       .choices = "auto,float32,float,bfloat16,float16,half"},
      {.names = "--max-model-len",
       .group = group,
       .target = &f.max_model_len,
       .help = "context: prompt and output tokens of a request; auto: what memory holds",
       .fallback = "the model's, or what memory holds"},
      {.names = "--seed", .group = group, .target = &f.seed, .help = "for requests without a seed of their own"},
  };
}

std::vector<Flag> step_and_file_rows(EngineFlags& f) {
  std::vector<Flag> rows = memory_rows(f);
  for (Flag& row : layout_rows(f)) rows.push_back(row);
  for (Flag& row : load_flag_rows(f.load)) rows.push_back(row);
  return rows;
}

Result<bool> resolve_names(EngineFlags& flags) {
  ModelSource source{.revision = flags.revision, .token = flags.hf_token, .cache = flags.download_dir};
  std::optional<std::string>& model = flags.model ? flags.model : flags.model_flag;
  if (!model) return false;
  ModelSource model_source = source;
  model_source.ignore = flags.load.ignore_patterns;
  OCTET_TRY(const auto path, resolve_model_name(*model, model_source));
  if (path) model = path->string();
  if (!flags.tokenizer) return path.has_value();
  if (flags.load.tokenizer_revision) source.revision = flags.load.tokenizer_revision;
  OCTET_TRY(const auto tokenizer, resolve_tokenizer_name(*flags.tokenizer, source));
  if (tokenizer) flags.tokenizer = tokenizer->string();
  return path.has_value();
}

Result<octet::engine::ReplicaOptions> replica_options(const EngineFlags& f) {
  if (f.model.has_value() == f.model_flag.has_value() && f.model != f.model_flag) {
    return fail(ErrorCode::kInvalid, "--model {} names another model than {}", *f.model_flag, *f.model);
  }
  if (!f.model && !f.model_flag)
    return fail(ErrorCode::kInvalid, "MODEL is missing: a folder, a GGUF file, ORG/NAME of the hub, or smollm2");
  OCTET_TRY_VOID(check_layout(f));
  octet::engine::ReplicaOptions replica;
  replica.model = f.model ? *f.model : *f.model_flag;
  if (f.tokenizer) replica.tokenizer = *f.tokenizer;
  replica.skip_tokenizer = f.skip_tokenizer;
  replica.dtype = dtype_name(f.dtype);
  replica.threads = static_cast<int>(f.threads.value_or(0));
  replica.kv_cache_bytes = f.kv_cache_bytes;
  replica.memory_share = f.memory_share;
  replica.block_size = static_cast<std::int32_t>(f.block_size);
  OCTET_TRY(replica.max_model_len, context_length(f.max_model_len));
  replica.max_num_seqs = static_cast<std::int32_t>(f.max_num_seqs);
  if (f.max_batched_tokens) replica.max_num_batched_tokens = static_cast<std::int32_t>(*f.max_batched_tokens);
  replica.prefix_caching = f.prefix_caching;
  replica.policy = f.policy == "priority" ? octet::engine::SchedulerConfig::Policy::kPriority
                                          : octet::engine::SchedulerConfig::Policy::kFcfs;
  replica.seed = static_cast<std::uint64_t>(f.seed);
  OCTET_TRY_VOID(apply_load_flags(f.load, replica));
  return replica;
}
