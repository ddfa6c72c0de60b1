#include "apps/octet/load_flags.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "octet/base/json.h"

using octet::ErrorCode;
using octet::fail;
using octet::Flag;
using octet::Result;

namespace {

constexpr double kMaxInt = std::numeric_limits<std::int32_t>::max();

std::vector<Flag> file_flags(LoadFlags& f) {
  constexpr std::string_view group = "model files";
  return {
      {.names = "--load-format",
       .group = group,
       .target = &f.load_format,
       .help = "what MODEL must be: a folder with safetensors, or a GGUF file; dummy: noise for weights",
       .choices = "auto,safetensors,gguf,dummy"},
      {.names = "--safetensors-load-strategy",
       .group = group,
       .target = &f.load_strategy,
       .help = "weights are mapped, read ahead and read once with each of these",
       .choices = "lazy,eager,prefetch"},
      {.names = "--quantization -q",
       .group = group,
       .target = &f.quantization,
       .help =
           "format of the weights: confirms the checkpoint's (fp8, fbgemm_fp8, modelopt, compressed-tensors, gguf); "
           "fp8, fp8_per_tensor and fp8_per_block make 8-bit floats of plain weights while they are read",
       .fallback = "as the checkpoint tells"},
      {.names = "--ignore-patterns",
       .group = group,
       .target = &f.ignore_patterns,
       .help = "files that are neither fetched from the hub nor taken for weights"},
      {.names = "--hf-config-path",
       .group = group,
       .target = &f.hf_config_path,
       .help = "config.json, or the folder with it, in place of the model's own"},
      {.names = "--hf-overrides",
       .group = group,
       .target = &f.hf_overrides,
       .help = "JSON object of members of config.json to replace, as in '{\"rope_theta\": 1e6}' or "
               "--hf-overrides.rope_theta "
               "1e6",
       .json = true},
      {.names = "--disable-sliding-window",
       .group = group,
       .target = &f.disable_sliding_window,
       .help = "serve a model of sliding windows with full attention, and a context no longer than its window"},
      {.names = "--generation-config",
       .group = group,
       .target = &f.generation_config,
       .help = "defaults of sampling: auto (the model's generation_config.json), vllm (none), or the folder with one"},
      {.names = "--override-generation-config",
       .group = group,
       .target = &f.generation_overrides,
       .help = "JSON object of such defaults over these, as in '{\"temperature\": 0.5}'",
       .json = true},
      {.names = "--tokenizer-mode",
       .group = group,
       .target = &f.tokenizer_mode,
       .help = "one tokenizer reads every format, whichever of these is given",
       .choices = "auto,hf,slow,mistral"},
      {.names = "--tokenizer-revision",
       .group = group,
       .target = &f.tokenizer_revision,
       .help = "branch, tag or commit of --tokenizer on the hub",
       .fallback = "--revision"},
      {.names = "--code-revision",
       .group = group,
       .target = &f.code_revision,
       .help = "taken and not used: no code is run from a checkpoint"},
  };
}

std::vector<Flag> step_flags(LoadFlags& f) {
  constexpr std::string_view group = "memory and scheduling";
  return {
      {.names = "--num-gpu-blocks-override",
       .group = group,
       .target = &f.blocks,
       .help = "size of the KV cache in blocks",
       .fallback = "from --kv-cache-memory-bytes or --gpu-memory-utilization",
       .min = 1,
       .max = kMaxInt},
      {.names = "--kv-cache-dtype",
       .group = group,
       .target = &f.kv_cache_dtype,
       .help = "type of the KV cache: auto (FP8 where the checkpoint declares it, else as --dtype), fp8 or fp8_e4m3, "
               "bfloat16 or float16 where --dtype is the same; others are not in this version",
       .choices =
           "auto,bfloat16,float16,fp8,fp8_ds_mla,fp8_e4m3,fp8_e5m2,fp8_inc,fp8_per_token_head,int4_per_token_head,"
           "int8_per_token_head,nvfp4,nvfp4_4over6,nvfp4_ds_mla,turboquant_3bit_nc,turboquant_4bit_nc,"
           "turboquant_k3v4_nc,turboquant_k8v4,ultraquant_4bit"},
      {.names = "--max-num-scheduled-tokens",
       .group = group,
       .target = &f.scheduled_tokens,
       .help = "tokens of one step, where it is less than --max-num-batched-tokens",
       .min = 1,
       .max = kMaxInt},
      {.names = "--max-num-active-seqs",
       .group = group,
       .target = &f.active_seqs,
       .help = "sequences that run at once, where memory is laid out for --max-num-seqs of them",
       .fallback = "--max-num-seqs",
       .min = 1,
       .max = kMaxInt},
      {.names = "--long-prefill-token-threshold",
       .group = group,
       .target = &f.long_prefill_threshold,
       .help = "the most tokens of one prompt that a step takes, so that others get a part of it; 0: no limit",
       .min = 0,
       .max = kMaxInt},
      {.names = "--watermark",
       .group = group,
       .target = &f.watermark,
       .help = "share of the KV blocks that stay free when a request is taken in, for those that run",
       .min = 0,
       .max = 0.9},
      {.names = "--async-scheduling",
       .group = group,
       .target = &f.async_scheduling,
       .help = "a step is planned while another runs"},
  };
}

}  // namespace

std::vector<Flag> load_flag_rows(LoadFlags& flags) {
  std::vector<Flag> rows = file_flags(flags);
  for (Flag& row : step_flags(flags)) rows.push_back(row);
  return rows;
}

Result<> apply_load_flags(const LoadFlags& f, octet::engine::ReplicaOptions& replica) {
  using Format = octet::formats::OpenOptions::Format;
  replica.open.format = f.load_format == "gguf"          ? Format::kGguf
                        : f.load_format == "safetensors" ? Format::kSafetensors
                        : f.load_format == "dummy"       ? Format::kDummy
                                                         : Format::kAny;
  if (f.hf_config_path) replica.open.config = *f.hf_config_path;
  replica.open.config_changes.disable_sliding_window = f.disable_sliding_window;
  if (f.hf_overrides) {
    auto parsed = octet::parse_json(*f.hf_overrides);
    if (!parsed) return within("--hf-overrides", std::move(parsed).error());
    if (!parsed->is_object()) {
      return fail(ErrorCode::kInvalid, "--hf-overrides {}: expected a JSON object", *f.hf_overrides);
    }
    replica.open.config_changes.overrides = *std::move(parsed);
  }
  replica.open.ignore_patterns = f.ignore_patterns;
  if (f.quantization) replica.open.quantization = *f.quantization;
  replica.open.generation = f.generation_config;
  if (f.generation_overrides) {
    // Known before the model is opened, so that a slip of the pen is told at once.
    auto parsed = octet::parse_json(*f.generation_overrides);
    if (!parsed) return within("--override-generation-config", std::move(parsed).error());
    if (!parsed->is_object()) return fail(ErrorCode::kInvalid, "--override-generation-config: expected a JSON object");
    replica.open.generation_overrides = *f.generation_overrides;
  }
  constexpr std::array kCacheTypes = {"auto", "bfloat16", "float16", "fp8", "fp8_e4m3"};
  if (std::ranges::find(kCacheTypes, f.kv_cache_dtype) == kCacheTypes.end()) {
    return fail(ErrorCode::kUnsupported, "--kv-cache-dtype {}: not built into this version; supported are {}",
                f.kv_cache_dtype, fmt::join(kCacheTypes, ", "));
  }
  replica.kv_cache_dtype = f.kv_cache_dtype;
  replica.kv_blocks = f.blocks;
  if (f.scheduled_tokens) {
    const auto most = static_cast<std::int32_t>(*f.scheduled_tokens);
    replica.max_num_batched_tokens = std::min(replica.max_num_batched_tokens.value_or(most), most);
  }
  if (f.active_seqs) {
    if (*f.active_seqs > replica.max_num_seqs) {
      return fail(ErrorCode::kInvalid, "--max-num-active-seqs {}: at most --max-num-seqs, which is {}", *f.active_seqs,
                  replica.max_num_seqs);
    }
    replica.max_num_active_seqs = static_cast<std::int32_t>(*f.active_seqs);
  }
  replica.long_prefill_threshold = static_cast<std::int32_t>(f.long_prefill_threshold);
  replica.watermark = f.watermark;
  replica.steps_in_flight = f.async_scheduling ? 2 : 1;
  return {};
}
