#include "octet/server/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>

namespace octet::server {
namespace {

using engine::HistogramSnapshot;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

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
    return out.str();
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

void add_engine(Families& out, const engine::Replica& replica) {
  const engine::EngineStats stats = replica.engine->stats();
  const auto number = [](auto value) { return static_cast<double>(value); };
  out.gauge("vllm:num_requests_running", "Sequences in the running batch", number(stats.running));
  out.gauge("vllm:num_requests_waiting", "Sequences waiting for a place in the batch", number(stats.waiting));
  out.gauge("vllm:kv_cache_usage_perc", "Share of the KV blocks that running sequences hold, 0 to 1",
            fraction(stats.blocks_used, stats.blocks_total));
  out.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache",
              number(stats.prefix_queries));
  out.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache", number(stats.prefix_hits));
  out.counter("vllm:num_preemptions_total", "Sequences that gave their place back", number(stats.preemptions));
  out.counter("vllm:prompt_tokens_total", "Prompt tokens taken in", number(stats.prompt_tokens));
  out.counter("vllm:generation_tokens_total", "Tokens generated", number(stats.generation_tokens));
  constexpr const char* kReasons[] = {"stop", "length", "abort", "error"};
  for (std::size_t i = 0; i < stats.finished.size(); ++i) {
    out.counter("vllm:request_success_total", "Sequences that ended, by reason", number(stats.finished[i]),
                {{"finished_reason", kReasons[i]}});
  }
  out.histogram("vllm:iteration_tokens_total", "Tokens per step", stats.step_rows);
  out.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token", stats.time_to_first_token);
  out.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a sequence", stats.inter_token_latency);
  out.histogram("vllm:e2e_request_latency_seconds", "From arrival to the end", stats.request_latency);
  const engine::SchedulerConfig& config = replica.engine->config().scheduler;
  out.gauge("vllm:cache_config_info", "The KV cache's settings, as labels", 1,
            {{"block_size", std::to_string(config.block_size)},
             {"num_gpu_blocks", std::to_string(config.blocks)},
             {"enable_prefix_caching", config.prefix_caching ? "True" : "False"},
             {"kv_cache_memory_bytes", std::to_string(replica.kv_bytes)},
             {"kv_cache_size_tokens", std::to_string(replica.kv_tokens)}});
}

}  // namespace

std::string metrics_text(const Service& service) {
  Families out(service.names().front());
  if (const auto model = service.model()) add_engine(out, *model->replica);
  constexpr const char* kHelp = "Requests refused at admission";
  out.server_counter("vllm:admission_rejections_total", kHelp, static_cast<double>(service.rejected_full_queue()),
                     {{"reason", "queue_full"}});
  out.server_counter("vllm:admission_rejections_total", kHelp, static_cast<double>(service.rejected_unavailable()),
                     {{"reason", "unavailable"}});
  return out.text();
}

}  // namespace octet::server
