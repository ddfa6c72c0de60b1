#include "apps/octet/serve_flags.h"

#include <limits>

#include "apps/octet/template_flag.h"
#include "apps/octet/vllm_flags.h"

using octet::ErrorCode;
using octet::fail;
using octet::Flag;
using octet::Result;

namespace {

constexpr double kMaxInt = std::numeric_limits<std::int32_t>::max();

std::vector<Flag> server_flags(ServeFlags& f) {
  constexpr std::string_view group = "server";
  return {
      {.names = "--host",
       .group = group,
       .target = &f.host,
       .help = "address or name to listen on; 0.0.0.0 or :: for every interface"},
      {.names = "--port", .group = group, .target = &f.port, .help = "0: any free one", .min = 0, .max = 65535},
      {.names = "--uds", .group = group, .target = &f.uds, .help = "listen on this Unix socket instead"},
      {.names = "--served-model-name",
       .group = group,
       .target = &f.served_names,
       .help = "names that clients use; answers without a name show the first",
       .fallback = "MODEL as given"},
      {.names = "--shutdown-timeout",
       .group = group,
       .target = &f.shutdown_timeout,
       .help = "seconds that running requests get after SIGTERM",
       .min = 0,
       .max = 86400},
      {.names = "--watchdog-timeout",
       .group = group,
       .target = &f.watchdog_timeout,
       .help = "seconds without progress of an engine that has work, after which /health answers 503; 0: never",
       .min = 0,
       .max = 86400},
      {.names = "--enable-prompt-tokens-details",
       .group = group,
       .target = &f.prompt_tokens_details,
       .help = "usage tells the cached prompt tokens"},
      {.names = "--return-tokens-as-token-ids",
       .group = group,
       .target = &f.return_tokens_as_ids,
       .help = "log-probabilities call tokens token_id:5, so that parts of characters can be told apart"},
      {.names = "--max-logprobs",
       .group = group,
       .target = &f.max_logprobs,
       .help = "the most log-probabilities that a request may ask for with a token; -1: the whole vocabulary",
       .min = -1,
       .max = 1 << 24},
      {.names = "--enable-force-include-usage",
       .group = group,
       .target = &f.force_include_usage,
       .help = "streams end with usage, asked or not"},
      {.names = "--config",
       .group = group,
       .target = &f.config,
       .help = "YAML file of flags, as in \"port: 8080\"; the command line overrides it"},
  };
}

// What the server takes before it refuses.
std::vector<Flag> limit_flags(ServeFlags& f) {
  constexpr std::string_view group = "server";
  return {
      {.names = "--max-num-queued-reqs",
       .group = group,
       .target = &f.max_queued,
       .help = "sequences that may run and wait; beyond, 429",
       .fallback = "1,024 wait",
       .min = 1,
       .max = kMaxInt},
      {.names = "--max-num-queued-tokens",
       .group = group,
       .target = &f.max_queued_tokens,
       .help = "prompt tokens of requests without a first token, from which on new ones get 429",
       .fallback = "no limit",
       .min = 1,
       .max = 1e15},
      {.names = "--max-body-bytes",
       .group = group,
       .target = &f.body_bytes,
       .help = "largest request body",
       .min = 1024,
       .max = 1e10},
      {.names = "--h11-max-incomplete-event-size",
       .group = group,
       .target = &f.header_bytes,
       .help = "largest request line and headers, bytes",
       .min = 1024,
       .max = 1e8},
      {.names = "--h11-max-header-count",
       .group = group,
       .target = &f.header_count,
       .help = "most header fields",
       .min = 8,
       .max = 65536},
  };
}

std::vector<Flag> model_flags(ServeFlags& f) {
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
      {.names = "--chat-template",
       .group = group,
       .target = &f.chat_template,
       .help = "Jinja template: a file, or the template itself",
       .fallback = "the model's own"},
      {.names = "--chat-template-content-format",
       .group = group,
       .target = &f.content_format,
       .help = "content that templates are given: a string, a list of parts, or whichever the template takes",
       .choices = "auto,string,openai"},
      {.names = "--trust-request-chat-template",
       .group = group,
       .target = &f.trust_template,
       .help = "render chat_template of a request; else such a request is refused"},
      {.names = "--default-chat-template-kwargs",
       .group = group,
       .target = &f.chat_template_kwargs,
       .help = "JSON object of names for templates, which chat_template_kwargs of a request overrides",
       .fallback = "none",
       .json = true},
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

std::vector<Flag> engine_flags(ServeFlags& f) {
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

std::vector<Flag> layout_flags(ServeFlags& f) {
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

Result<> check_layout(const ServeFlags& f) {
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

Result<> template_options(const ServeFlags& f, octet::server::TemplateOptions& options) {
  using octet::text::ContentFormat;
  options.trust_request = f.trust_template;
  options.content_format = f.content_format == "string"   ? ContentFormat::kString
                           : f.content_format == "openai" ? ContentFormat::kParts
                                                          : ContentFormat::kAuto;
  if (!f.chat_template_kwargs) return {};
  auto kwargs = octet::parse_json(*f.chat_template_kwargs);
  if (!kwargs) return within("--default-chat-template-kwargs", std::move(kwargs).error());
  if (!kwargs->is_object()) return fail(ErrorCode::kInvalid, "--default-chat-template-kwargs: expected a JSON object");
  options.default_variables = *std::move(kwargs);
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

octet::FlagTable serve_flag_table(ServeFlags& flags) {
  octet::FlagTable table("octet serve", "Serves a model over the OpenAI API.", model_flags(flags));
  table.add(server_flags(flags));
  table.add(limit_flags(flags));
  table.add(answer_flag_rows(flags.answers));
  table.add(surface_flag_rows(flags.surface));
  table.add(engine_flags(flags));
  table.add(layout_flags(flags));
  table.add(load_flag_rows(flags.load));
  table.add(log_flags(flags.log));
  table.add_missing(octet::vllm_flags::kAll);
  return table;
}

Result<octet::server::ServeOptions> serve_options(const ServeFlags& f) {
  if (f.model.has_value() == f.model_flag.has_value() && f.model != f.model_flag) {
    return fail(ErrorCode::kInvalid, "--model {} names another model than {}", *f.model_flag, *f.model);
  }
  if (!f.model && !f.model_flag)
    return fail(ErrorCode::kInvalid, "MODEL is missing: a folder, a GGUF file, ORG/NAME of the hub, or smollm2");
  OCTET_TRY_VOID(check_layout(f));
  octet::server::ServeOptions options;
  OCTET_TRY_VOID(apply_surface_flags(f.surface, options));
  OCTET_TRY_VOID(apply_log_flags(f.log, options));
  apply_answer_flags(f.answers, options);
  options.http.host = f.host;
  options.http.port = static_cast<std::uint16_t>(f.port);
  options.http.unix_path = f.uds.value_or("");
  options.http.limits.header_bytes = static_cast<std::size_t>(f.header_bytes);
  options.http.limits.header_count = static_cast<std::size_t>(f.header_count);
  options.http.limits.body_bytes = static_cast<std::size_t>(f.body_bytes);
  options.api.prompt_tokens_details = f.prompt_tokens_details;
  options.api.force_include_usage = f.force_include_usage;
  options.api.return_tokens_as_ids = f.return_tokens_as_ids;
  options.replica.max_logprobs = static_cast<std::int32_t>(f.max_logprobs);
  options.names = f.served_names;
  options.shutdown_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(f.shutdown_timeout * 1000));

  options.watchdog = std::chrono::milliseconds(static_cast<std::int64_t>(f.watchdog_timeout * 1000));
  if (options.watchdog->count() == 0) options.watchdog.reset();

  octet::engine::ReplicaOptions& replica = options.replica;
  replica.model = f.model ? *f.model : *f.model_flag;
  if (f.tokenizer) replica.tokenizer = *f.tokenizer;
  replica.skip_tokenizer = f.skip_tokenizer;
  if (f.chat_template) {
    OCTET_TRY(replica.chat_template, chat_template_source(*f.chat_template));
  }
  OCTET_TRY_VOID(template_options(f, options.api.templates));
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
  if (f.max_queued) replica.max_admitted = static_cast<std::int32_t>(*f.max_queued);
  replica.max_queued_tokens = f.max_queued_tokens;
  replica.seed = static_cast<std::uint64_t>(f.seed);
  OCTET_TRY_VOID(apply_load_flags(f.load, replica));
  return options;
}
