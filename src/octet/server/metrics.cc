#include "octet/server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>
#include <string_view>

#include "octet/base/log.h"

namespace octet::server {
namespace {

using engine::HistogramSnapshot;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr std::int32_t kDefaultBlockSize = 16;

double number(auto value) { return static_cast<double>(value); }

// The digits of a whole number as Prometheus' clients for Go and Python write it as a bound: 5.0, 1e+06.
std::string whole_bound(std::string_view digits) {
  if (digits.size() <= 6) return fmt::format("{}.0", digits);
  std::string mantissa = fmt::format("{}.{}", digits[0], digits.substr(1));
  mantissa.erase(mantissa.find_last_not_of('0') + 1);
  if (mantissa.back() == '.') mantissa.pop_back();
  return fmt::format("{}e+{:02}", mantissa, digits.size() - 1);
}

// The serializer writes whole bounds as le="5". Series are found by that text, so it must be vLLM's, le="5.0".
std::string with_whole_bounds(std::string_view text) {
  constexpr std::string_view kBound = ",le=\"";
  std::string out;
  for (std::size_t at; (at = text.find(kBound)) != text.npos;) {
    at += kBound.size();
    out += text.substr(0, at);
    text.remove_prefix(at);
    const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
    text.remove_prefix(digits.size());
    out += !digits.empty() && text.starts_with('"') ? whole_bound(digits) : digits;
  }
  return out.append(text);
}

class Families {
 public:
  explicit Families(const std::string& model_name)
      : model_only_{{"model_name", model_name}}, common_{{"engine", "0"}, {"model_name", model_name}} {}

  void gauge(const char* name, const char* help, double value, Labels more = {}) {
    ClientMetric metric = labelled(common_, std::move(more));
    metric.gauge.value = value;
    add(name, help, MetricType::Gauge, std::move(metric));
  }
  void counter(const char* name, const char* help, double value, Labels more = {}) {
    ClientMetric metric = labelled(common_, std::move(more));
    metric.counter.value = value;
    add(name, help, MetricType::Counter, std::move(metric));
  }
  // Settings as labels of a gauge that is always 1; vLLM's has no model's name.
  void info(const char* name, const char* help, Labels more) {
    ClientMetric metric = labelled({{"engine", "0"}}, std::move(more));
    metric.gauge.value = 1;
    add(name, help, MetricType::Gauge, std::move(metric));
  }
  void server_counter(const char* name, const char* help, double value, Labels more) {
    ClientMetric metric = labelled(model_only_, std::move(more));
    metric.counter.value = value;
    add(name, help, MetricType::Counter, std::move(metric));
  }
  void histogram(const char* name, const char* help, const HistogramSnapshot& snapshot) {
    ClientMetric metric = labelled(common_, {});
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < snapshot.counts.size(); ++i) {
      total += snapshot.counts[i];
      const double bound = i < snapshot.bounds.size() ? snapshot.bounds[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({total, bound});
    }
    metric.histogram.sample_count = total;
    metric.histogram.sample_sum = snapshot.sum;
    add(name, help, MetricType::Histogram, std::move(metric));
  }

  std::string text() const {
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families_);
    return with_whole_bounds(out.str());
  }

 private:
  static ClientMetric labelled(const Labels& base, Labels more) {
    ClientMetric metric;
    metric.label = base;
    for (ClientMetric::Label& label : more) metric.label.push_back(std::move(label));
    return metric;
  }
  // Metrics of one name, differing in labels, follow each other.
  void add(const char* name, const char* help, MetricType type, ClientMetric metric) {
    if (families_.empty() || families_.back().name != name) {
      MetricFamily family;
      family.name = name;
      family.help = help;
      family.type = type;
      families_.push_back(std::move(family));
    }
    families_.back().metric.push_back(std::move(metric));
  }

  Labels model_only_, common_;
  std::vector<MetricFamily> families_;
};

double fraction(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

void add_load(Families& out, const engine::EngineStats& stats) {
  out.gauge("vllm:num_requests_running", "Sequences in the running batch", stats.running);
  out.gauge("vllm:num_requests_waiting", "Sequences waiting for a place in the batch", stats.waiting);
  constexpr const char* kWaiting = "Sequences waiting, by reason: capacity (slots, tokens of a step, KV blocks)";
  out.gauge("vllm:num_requests_waiting_by_reason", kWaiting, stats.waiting, {{"reason", "capacity"}});
  out.gauge("vllm:num_requests_waiting_by_reason", kWaiting, 0, {{"reason", "deferred"}});
  out.gauge("vllm:kv_cache_usage_perc", "Share of the KV blocks that running sequences hold, 0 to 1",
            fraction(stats.blocks_used, stats.blocks_total));
}

void add_tokens(Families& out, const engine::EngineStats& stats) {
  out.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache",
              number(stats.prefix_queries));
  out.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache", number(stats.prefix_hits));
  out.counter("vllm:num_preemptions_total", "Sequences that gave their place back", number(stats.preemptions));
  out.counter("vllm:prompt_tokens_total", "Prompt tokens of sequences that got their first token",
              number(stats.prompt_tokens));
  constexpr const char* kSource = "The same, by where their keys and values came from";
  const double cached = number(stats.cached_tokens);
  out.counter("vllm:prompt_tokens_by_source_total", kSource, number(stats.prompt_tokens) - cached,
              {{"source", "local_compute"}});
  out.counter("vllm:prompt_tokens_by_source_total", kSource, cached, {{"source", "local_cache_hit"}});
  out.counter("vllm:prompt_tokens_by_source_total", kSource, 0, {{"source", "external_kv_transfer"}});
  out.counter("vllm:prompt_tokens_cached_total", "Prompt tokens that were not computed", cached);
  out.counter("vllm:prompt_tokens_cached_by_source_total", "The same, by where they were", cached,
              {{"source", "device"}});
  out.counter("vllm:generation_tokens_total", "Tokens generated", number(stats.generation_tokens));
  constexpr const char* kReasons[] = {"stop", "length", "abort", "error"};
  for (std::size_t i = 0; i < stats.finished.size(); ++i) {
    out.counter("vllm:request_success_total", "Sequences that ended, by reason", number(stats.finished[i]),
                {{"finished_reason", kReasons[i]}});
  }
}

void add_histograms(Families& out, const engine::EngineStats& stats) {
  out.histogram("vllm:request_prompt_tokens", "Prompt tokens of a sequence that ended", stats.prompt_length);
  out.histogram("vllm:request_generation_tokens", "Generated tokens of a sequence that ended", stats.generation_length);
  out.histogram("vllm:iteration_tokens_total", "Tokens of a step", stats.step_rows);
  out.histogram("vllm:request_max_num_generation_tokens", "Generated tokens of a request's longest sequence",
                stats.longest_generation);
  out.histogram("vllm:request_params_n", "n of a request", stats.choices);
  out.histogram("vllm:request_params_max_tokens", "max_tokens of a sequence that ended", stats.max_tokens);
  out.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token", stats.time_to_first_token);
  out.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a sequence", stats.inter_token_latency);
  out.histogram("vllm:request_time_per_output_token_seconds", "A sequence's mean time per token after the first",
                stats.token);
  out.histogram("vllm:e2e_request_latency_seconds", "From arrival to the end", stats.request_latency);
  out.histogram("vllm:request_queue_time_seconds", "From arrival to the first step", stats.queue);
  out.histogram("vllm:request_inference_time_seconds", "From the first step to the last token", stats.inference);
  out.histogram("vllm:request_prefill_time_seconds", "From the first step to the first token", stats.prefill);
  out.histogram("vllm:request_decode_time_seconds", "From the first token to the last", stats.decode);
  out.histogram("vllm:request_num_preemptions", "How often a sequence gave its place back", stats.sequence_preemptions);
  out.histogram("vllm:request_prefill_kv_computed_tokens", "Prompt tokens of a sequence that were computed",
                stats.computed_prompt);
}

// Every label that vLLM's has; those about what is not there hold what vLLM shows when it is off.
void add_cache_config(Families& out, const engine::Replica& replica) {
  const engine::SchedulerConfig& config = replica.engine->config().scheduler;
  const std::string block_size = std::to_string(config.block_size);
  Labels labels = {
      {"block_size", block_size},
      {"user_specified_block_size", config.block_size == kDefaultBlockSize ? "False" : "True"},
      {"cache_hit_alignment_tokens", block_size},
      {"effective_attention_block_size", block_size},
      {"hash_block_size", block_size},
      {"num_gpu_blocks", std::to_string(config.blocks)},
      {"enable_prefix_caching", config.prefix_caching ? "True" : "False"},
      {"prefix_caching_hash_algo", "xxhash"},
      {"gpu_memory_utilization", fmt::format("{}", replica.memory_share)},
      {"kv_cache_memory_bytes", std::to_string(replica.kv_bytes)},
      {"kv_cache_size_tokens", std::to_string(replica.kv_tokens)},
      {"kv_cache_max_concurrency", fmt::format("{:.2f}", fraction(replica.kv_tokens, replica.max_model_len))},
      {"_block_size_resolved", "True"},
      {"cache_dtype", replica.kv_cache_dtype},
      {"mamba_cache_dtype", "auto"},
      {"mamba_ssm_cache_dtype", "auto"},
      {"mamba_cache_mode", "none"},
      {"kv_cache_dtype_skip_layers", "[]"},
  };
  for (const char* off : {"enable_mamba_shared_prefix_checkpoint", "is_attention_free", "kv_sharing_fast_prefill",
                          "swa_bounded_replay", "use_kda_recoverssm", "use_replayssm"}) {
    labels.push_back({off, "False"});
  }
  for (const char* none :
       {"kv_cache_layout", "kv_offloading_backend", "kv_offloading_size", "mamba_block_size", "mamba_page_size_padded",
        "num_cpu_blocks", "num_gpu_blocks_override", "prefix_cache_retention_interval", "prefix_match_unit",
        "replayssm_buffer_len", "skip_page_size_padded", "sliding_window"}) {
    labels.push_back({none, "None"});
  }
  out.info("vllm:cache_config_info", "Always 1; the KV cache's settings, as labels", std::move(labels));
}

void add_own(Families& out, const engine::EngineStats& stats, const engine::Replica& replica) {
  out.gauge("octet:build_info", "Always 1; what runs, as labels", 1,
            {{"version", OCTET_VERSION}, {"backend", replica.backend}});
  out.gauge("octet:weight_bytes", "Memory of the weights", number(replica.weight_bytes));
  out.gauge("octet:kv_cache_bytes", "Memory of the KV cache", number(replica.kv_bytes));
  constexpr const char* kBlocks = "KV blocks by state: owned by sequences, cached for prompts to come, free";
  out.gauge("octet:kv_blocks", kBlocks, stats.blocks_used, {{"state", "owned"}});
  out.gauge("octet:kv_blocks", kBlocks, stats.blocks_cached, {{"state", "cached"}});
  out.gauge("octet:kv_blocks", kBlocks, stats.blocks_total - stats.blocks_used - stats.blocks_cached,
            {{"state", "free"}});
  out.counter("octet:steps_total", "Steps of the engine", number(stats.steps));
  out.counter("octet:requests_refused_total", "Requests that the engine did not take: full, draining, or never fit",
              number(stats.rejected));
}

void add_experts(Families& out, const engine::ExpertLoads& loads) {
  for (std::size_t expert = 0; expert < loads.rows.size(); ++expert) {
    out.counter("octet:expert_rows_total", "Rows that an expert computed, over all layers", number(loads.rows[expert]),
                {{"expert", std::to_string(expert)}});
  }
  for (const auto& [layer, imbalance] : loads.layers) {
    out.gauge("octet:expert_imbalance",
              "Rows of a layer's busiest expert over the mean of its experts, since the start", imbalance,
              {{"layer", std::to_string(layer)}});
  }
}

// What is there without a model, too.
void add_server(Families& out, const Service& service) {
  constexpr const char* kHelp = "Requests refused at admission";
  out.server_counter("vllm:admission_rejections_total", kHelp, number(service.rejected_full_queue()),
                     {{"reason", "queue_full"}});
  out.server_counter("vllm:admission_rejections_total", kHelp, number(service.rejected_unavailable()),
                     {{"reason", "unavailable"}});
  for (const auto& [key, count] : service.answers()) {
    out.server_counter("octet:http_requests_total", "Requests answered, by route and status; 499: the client left",
                       number(count), {{"route", key.first}, {"status", std::to_string(key.second)}});
  }
  out.server_counter("octet:log_lines_dropped_total", "Log lines that standard error did not take in time",
                     number(dropped_log_lines()), {});
}

}  // namespace

std::string metrics_text(const Service& service, bool engine_metrics) {
  Families out(service.names().front());
  if (const auto model = engine_metrics ? service.model() : nullptr) {
    const engine::EngineStats stats = model->replica->engine->stats();
    add_load(out, stats);
    add_tokens(out, stats);
    add_histograms(out, stats);
    add_cache_config(out, *model->replica);
    add_own(out, stats, *model->replica);
    add_experts(out, stats.experts);
  }
  add_server(out, service);
  return out.text();
}

}  // namespace octet::server
