#include "octet/engine/replica.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "octet/base/log.h"
#include "octet/engine/memory_plan.h"
#include "octet/engine/model_executor.h"
#include "octet/engine/tokenizer_info.h"
#include "octet/engine/warm_up.h"
#include "octet/formats/checkpoint.h"
#include "octet/topology/machine.h"

namespace octet::engine {
namespace {

// More rows than this make no step faster per token, and their activations take memory.
constexpr std::int32_t kMostStepRows = 1024;
constexpr std::int32_t kFewestStepRows = 16;
constexpr std::int32_t kScoredRows = 32;  // of prompts, in a step: each takes a row of logits
// Code, stacks, queues, parsed tokenizers.
constexpr std::int64_t kProcessBytes = std::int64_t{48} << 20;

Result<DType> compute_type(const std::string& name, DType stored) {
  if (name == "auto") return stored == DType::kF32 ? DType::kBF16 : stored;
  if (name == "float32" || name == "float") return DType::kF32;
  if (name == "bfloat16") return DType::kBF16;
  if (name == "float16" || name == "half") return DType::kF16;
  return fail(ErrorCode::kInvalid, "--dtype {}: auto, float32, bfloat16 or float16", name);
}

Result<DType> cache_type(const std::string& name, DType computed, const formats::QuantizationConfig& quantization) {
  if (name == "auto") return quantization.kv_cache_fp8 ? DType::kF8E4M3 : computed;
  if (name == "fp8" || name == "fp8_e4m3") return DType::kF8E4M3;
  OCTET_TRY(const DType asked, compute_type(name, computed));
  if (asked == computed) return computed;
  return fail(ErrorCode::kUnsupported,
              "--kv-cache-dtype {}: the KV cache is FP8 or has the type of the activations, which is {} (--dtype)",
              name, dtype_info(computed).name);
}

Result<std::unique_ptr<text::Tokenizer>> find_tokenizer(const ReplicaOptions& options,
                                                        const formats::Checkpoint& checkpoint) {
  if (options.tokenizer) {
    auto tokenizer = text::Tokenizer::open(*options.tokenizer);
    if (!tokenizer) return within("--tokenizer", std::move(tokenizer).error());
    return tokenizer;
  }
  if (checkpoint.gguf() != nullptr) {
    auto tokenizer = text::Tokenizer::from_gguf(*checkpoint.gguf());
    if (!tokenizer) return within(checkpoint.path().string(), std::move(tokenizer).error());
    return tokenizer;
  }
  auto tokenizer = text::Tokenizer::open(checkpoint.path());
  if (!tokenizer && tokenizer.error().code == ErrorCode::kNotFound) {
    return fail(ErrorCode::kNotFound, "{}; --tokenizer names another one, --skip-tokenizer-init serves token ids alone",
                tokenizer.error().message);
  }
  return tokenizer;
}

// What a client is not told, but who runs the server should know.
void note_form(const text::NamedTemplate& made) {
  if (!made.form.system_role) log_warning("chat template {}: system messages do not show in its prompts", made.name);
  if (!made.form.shows_calls) log_info("chat template {}: it has no place for tool calls", made.name);
}

// A template that was asked for must parse; the model's own is done without, since completions need none.
Result<text::ChatTemplates> find_templates(const ReplicaOptions& options, const formats::Checkpoint& checkpoint,
                                           const Json& variables) {
  text::ChatTemplates templates;
  if (options.chat_template) {
    auto made = text::NamedTemplate::parse("default", *options.chat_template, variables);
    if (!made) return within("--chat-template", std::move(made).error());
    note_form(*made);
    templates.add(*std::move(made));
    return templates;
  }
  for (const auto& [name, source] : checkpoint.text.chat_templates) {
    auto made = text::NamedTemplate::parse(name, source, variables);
    if (made) {
      note_form(*made);
      templates.add(*std::move(made));
    } else {
      log_warning("{}: chat template {} is not used: {}", checkpoint.path().string(), name, made.error().message);
    }
  }
  return templates;
}

// The steps from a path to a running engine, in the order in which they are called.
class Loader {
 public:
  explicit Loader(const ReplicaOptions& options) : options_(options), replica_(std::make_unique<Replica>()) {}

  Result<> open();
  Result<> plan();
  Result<> load();
  Result<> start();
  std::unique_ptr<Replica> take() { return std::move(replica_); }

 private:
  Result<> check_options() const;
  Result<MemoryPlan> plan_with(const models::ModelNeeds& needs) const;
  void announce(std::int32_t step_rows) const;
  std::int32_t slots() const { return std::min(options_.max_num_seqs, max_rows_); }
  std::int32_t max_logprobs() const {
    const auto vocabulary = static_cast<std::int32_t>(replica_->config.vocab_size);
    return options_.max_logprobs < 0 ? vocabulary : std::min(options_.max_logprobs, vocabulary);
  }
  ModelExecutorConfig executor_config() const {
    return {.slots = slots(),
            .scored_rows = kScoredRows,
            .max_logprobs = max_logprobs(),
            .logprobs_mode = options_.logprobs_mode,
            .max_rows = max_rows_,
            .blocks_per_slot = (plan_.max_model_len + options_.block_size - 1) / options_.block_size,
            .blocks = plan_.blocks,
            .block_size = options_.block_size,
            .steps_in_flight = options_.steps_in_flight};
  }

  const ReplicaOptions& options_;
  std::unique_ptr<Replica> replica_;
  topology::Machine machine_;
  int threads_ = 1;
  std::int32_t max_rows_ = 0;
  std::unique_ptr<formats::Checkpoint> checkpoint_;
  ModelParts parts_;
  models::LoadOptions load_;
  models::ModelNeeds needs_;
  MemoryPlan plan_;
};

Result<> Loader::check_options() const {
  const auto at_least_one = [](std::string_view flag, std::int64_t value) -> Result<> {
    if (value >= 1) return {};
    return fail(ErrorCode::kInvalid, "{} {}: at least 1", flag, value);
  };
  OCTET_TRY_VOID(at_least_one("--max-num-seqs", options_.max_num_seqs));
  OCTET_TRY_VOID(at_least_one("--block-size", options_.block_size));
  OCTET_TRY_VOID(at_least_one("--max-num-batched-tokens", options_.max_num_batched_tokens.value_or(1)));
  OCTET_TRY_VOID(at_least_one("--kv-cache-memory-bytes", options_.kv_cache_bytes.value_or(1)));
  if (options_.max_waiting < 0)
    return fail(ErrorCode::kInvalid, "the queue's length {} is negative", options_.max_waiting);
  if (!(options_.memory_share > 0.0 && options_.memory_share < 1.0))
    return fail(ErrorCode::kInvalid, "--gpu-memory-utilization {}: between 0 and 1", options_.memory_share);
  return {};
}

Result<> Loader::open() {
  OCTET_TRY_VOID(check_options());
  machine_ = topology::inspect_machine();
  threads_ = options_.threads > 0 ? options_.threads : machine_.usable_threads;
  OCTET_TRY(checkpoint_, formats::Checkpoint::open(options_.model, options_.open));
  Replica& replica = *replica_;
  replica.config = checkpoint_->config();
  replica.generation = checkpoint_->generation();
  for (const auto& [name, text] : checkpoint_->text.special_tokens) replica.template_variables[name] = text;
  if (!options_.skip_tokenizer) {
    OCTET_TRY(replica.tokenizer, find_tokenizer(options_, *checkpoint_));
    OCTET_TRY(replica.tokenizer_info, describe_tokenizer(options_, *checkpoint_));
    OCTET_TRY(replica.chat_templates, find_templates(options_, *checkpoint_, replica.template_variables));
  }
  return {};
}

Result<> Loader::plan() {
  parts_.backend = ops::make_cpu_backend(threads_);
  if (parts_.backend == nullptr) return fail(ErrorCode::kUnsupported, "no CPU back end runs on this machine");
  if (options_.wrap_backend) parts_.backend = options_.wrap_backend(std::move(parts_.backend));
  parts_.stream = parts_.backend->create_stream();
  parts_.group = comm::make_solo_group();
  replica_->backend = fmt::format("{}, {} thread{}", parts_.backend->name(), threads_, threads_ == 1 ? "" : "s");

  max_rows_ = options_.max_num_batched_tokens.value_or(std::max(kMostStepRows, options_.max_num_seqs));
  OCTET_TRY(load_.dtype, compute_type(options_.dtype, replica_->config.dtype));
  replica_->dtype = dtype_info(load_.dtype).name;
  OCTET_TRY(const DType cache, cache_type(options_.kv_cache_dtype, load_.dtype, replica_->config.quantization));
  load_.cache_dtype = cache;
  replica_->cache_dtype = dtype_info(cache).name;
  replica_->kv_cache_dtype = options_.kv_cache_dtype;
  load_.max_rows = max_rows_;
  load_.max_logits_rows = logits_rows(executor_config());
  load_.block_size = options_.block_size;
  // Rotary tables are as long as the context, which is as long as they leave room for.
  load_.max_positions = 1;
  for (int round = 0; round < 2; ++round) {
    OCTET_TRY(needs_, models::plan_model(*checkpoint_, *parts_.backend, *parts_.group, load_));
    OCTET_TRY(plan_, plan_with(needs_));
    load_.max_positions = plan_.max_model_len;
  }
  return {};
}

Result<MemoryPlan> Loader::plan_with(const models::ModelNeeds& needs) const {
  std::int64_t bytes_per_token = 0;
  for (const models::CacheGroup& group : needs.cache_groups) bytes_per_token += group.bytes_per_token();
  const std::int64_t vocabulary = replica_->config.vocab_size;
  const std::int64_t logits = bytes_of(DType::kF32, vocabulary * logits_rows(executor_config()));
  const std::int64_t sampler = 24 * vocabulary * threads_;
  return plan_memory(
      {.free_bytes = machine_.memory_free,
       .model_bytes = needs.weight_bytes + needs.workspace_bytes + needs.table_bytes + logits + sampler + kProcessBytes,
       .bytes_per_token = bytes_per_token,
       .share = options_.memory_share,
       .kv_bytes = options_.kv_cache_bytes,
       .blocks = options_.kv_blocks,
       .model_positions = std::max<std::int64_t>(1, replica_->config.max_positions),
       .max_model_len = options_.max_model_len,
       .max_num_seqs = slots(),
       .block_size = options_.block_size});
}

Result<> Loader::load() {
  const std::int64_t begin = SteadyClock::instance().now_ns();
  if (options_.progress) {
    load_.progress = [this](std::int64_t done, std::int64_t total) { options_.progress("weights", done, total); };
  }
  OCTET_TRY(parts_.model, models::load_model(*checkpoint_, *parts_.backend, *parts_.stream, *parts_.group, load_));
  replica_->weight_bytes = parts_.model->weight_bytes();
  // Once more with what the weights really take.
  needs_.weight_bytes = replica_->weight_bytes;
  OCTET_TRY(plan_, plan_with(needs_));
  plan_.max_model_len = std::min(plan_.max_model_len, static_cast<std::int32_t>(load_.max_positions));
  const double seconds = std::max(1e-3, static_cast<double>(SteadyClock::instance().now_ns() - begin) * 1e-9);
  log_info("{}: {}, {} of weights in {:.1f} s ({}/s), {}", options_.model.string(), replica_->config.architecture,
           format_bytes(replica_->weight_bytes), seconds,
           format_bytes(static_cast<std::int64_t>(static_cast<double>(checkpoint_->weight_bytes()) / seconds)),
           replica_->backend);
  return {};
}

Result<> Loader::start() {
  Replica& replica = *replica_;
  const auto groups = static_cast<std::int32_t>(parts_.model->cache_groups().size());
  auto executor = std::make_unique<ModelExecutor>(executor_config(), std::move(parts_));
  replica.max_model_len = plan_.max_model_len;
  replica.kv_tokens = plan_.kv_tokens;
  replica.kv_bytes = executor->kv_bytes();
  replica.memory_share = options_.memory_share;

  const WarmUpLimits limits{.min_rows = std::min(max_rows_, std::max(kFewestStepRows, slots())),
                            .max_rows = max_rows_,
                            .context = plan_.max_model_len,
                            .cache_groups = groups,
                            .block_size = options_.block_size};
  const Clock& clock = SteadyClock::instance();
  std::int32_t step_rows = max_rows_;
  if (options_.max_num_batched_tokens) {
    time_step(*executor, limits, limits.min_rows, clock);
  } else {
    log_info("measuring how many tokens a step may take (--max-num-batched-tokens sets it and skips this)");
    step_rows = choose_step_rows(*executor, limits, clock);
  }
  announce(step_rows);

  const auto model_vocabulary = static_cast<std::int32_t>(replica.config.vocab_size);
  EngineConfig config;
  config.scheduler = {.policy = options_.policy,
                      .max_sequences = slots(),
                      .max_active = std::min(slots(), options_.max_num_active_seqs.value_or(slots())),
                      .max_step_rows = step_rows,
                      .max_context = plan_.max_model_len,
                      .blocks = plan_.blocks,
                      .block_size = options_.block_size,
                      .prefix_caching = options_.prefix_caching,
                      .max_waiting = options_.max_waiting,
                      .long_prefill_threshold = options_.long_prefill_threshold,
                      .watermark_blocks = static_cast<std::int32_t>(options_.watermark * plan_.blocks),
                      .max_scored_rows = kScoredRows,
                      .eos_tokens = replica.config.eos_tokens};
  config.vocabulary_size =
      replica.tokenizer ? std::min(replica.tokenizer->vocabulary_size(), model_vocabulary) : model_vocabulary;
  config.max_logprobs = max_logprobs();
  config.seed = options_.seed;
  config.steps_in_flight = options_.steps_in_flight;
  config.max_admitted = options_.max_admitted.value_or(0);
  config.max_queued_tokens = options_.max_queued_tokens.value_or(0);
  config.histogram_buckets = options_.histogram_buckets;
  replica.engine = std::make_unique<Engine>(config, std::move(executor), replica.tokenizer.get());
  return {};
}

void Loader::announce(std::int32_t step_rows) const {
  if (plan_.shortened) {
    log_warning("the context is {} tokens long, not the model's {}: that is what the KV cache holds",
                plan_.max_model_len, replica_->config.max_positions);
  }
  log_info("KV cache: {} tokens in {}, room for {:.2f} requests of {} tokens at once", plan_.kv_tokens,
           format_bytes(plan_.kv_bytes), static_cast<double>(plan_.kv_tokens) / plan_.max_model_len,
           plan_.max_model_len);
  log_info("a step takes up to {} tokens of up to {} sequences{}", step_rows, slots(),
           options_.max_num_batched_tokens ? "" : ", as measured to last 250 ms at most");
}

}  // namespace

Result<std::unique_ptr<Replica>> load_replica(const ReplicaOptions& options) {
  try {
    Loader loader(options);
    OCTET_TRY_VOID(loader.open());
    OCTET_TRY_VOID(loader.plan());
    OCTET_TRY_VOID(loader.load());
    OCTET_TRY_VOID(loader.start());
    return loader.take();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kExhausted, "{}: out of memory while it was loaded", options.model.string());
  } catch (const std::exception& problem) {
    return fail(ErrorCode::kIo, "{}: {}", options.model.string(), problem.what());
  }
}

}  // namespace octet::engine
