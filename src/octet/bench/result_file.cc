#include "octet/bench/result_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <system_error>

#include "octet/base/json.h"
#include "octet/base/parse.h"
#include "octet/bench/whole_file.h"

namespace octet::bench {
namespace {

constexpr double kSecond = 1e9;

// As Python writes a float: "2.0", "0.5", "inf".
std::string float_text(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

// "p90", "p99.9"
std::string percentile_name(double p) { return fmt::format("p{}", p); }

void add_times(Json& json, const std::string& metric, const Distribution& times,
               const std::vector<double>& percentiles) {
  json["mean_" + metric + "_ms"] = times.mean;
  json["median_" + metric + "_ms"] = times.percentile(50);
  json["std_" + metric + "_ms"] = times.stddev;
  for (const double p : percentiles) json[percentile_name(p) + "_" + metric + "_ms"] = times.percentile(p);
}

Json seconds_or_null(const std::optional<double>& ms) { return ms ? Json(*ms / 1000) : Json(nullptr); }

void add_lists(Json& json, const std::vector<RequestRecord>& records) {
  // In vLLM's order of keys.
  for (const char* key : {"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times",
                          "generated_texts", "errors"}) {
    json[key] = Json::array();
  }
  for (const RequestRecord& record : records) {
    const RequestTimes times = request_times(record);
    Json itl = Json::array();
    for (const double ms : times.itl) itl.push_back(ms / 1000);
    json["input_lens"].push_back(record.input_tokens);
    json["output_lens"].push_back(record.output_tokens);
    json["ttfts"].push_back(seconds_or_null(times.ttft));
    json["itls"].push_back(std::move(itl));
    json["latencies"].push_back(seconds_or_null(times.e2el));
    json["start_times"].push_back(static_cast<double>(record.planned_ns) / kSecond);
    json["queue_times"].push_back(static_cast<double>(record.sent_ns - record.planned_ns) / kSecond);
    json["generated_texts"].push_back(record.text);
    const bool unexplained = record.outcome != Outcome::kCompleted && record.error.empty();
    json["errors"].push_back(unexplained ? std::string("the run ended first") : record.error);
  }
}

void add_setup(Json& json, const ResultSetup& setup, std::string_view date) {
  json["date"] = date;
  json["endpoint_type"] = setup.backend;
  json["backend"] = setup.backend;
  json["label"] = setup.label ? Json(*setup.label) : Json(nullptr);
  json["model_id"] = setup.model_id;
  json["tokenizer_id"] = setup.tokenizer_id ? Json(*setup.tokenizer_id) : Json(nullptr);
  json["num_prompts"] = setup.num_prompts;
  for (const auto& [key, value] : setup.metadata) json[key] = value;
  json["request_rate"] = setup.request_rate > 0 ? Json(setup.request_rate) : Json("inf");
  json["burstiness"] = setup.burstiness;
  json["max_concurrency"] = setup.max_concurrency ? Json(*setup.max_concurrency) : Json(nullptr);
}

}  // namespace

Result<std::vector<std::string>> parse_percentile_metrics(std::string_view text) {
  constexpr std::array<std::string_view, 4> kKnown = {"ttft", "tpot", "itl", "e2el"};
  std::vector<std::string> out;
  for (const std::string_view word : split_commas(text)) {
    if (std::ranges::find(kKnown, word) == kKnown.end()) {
      return fail(ErrorCode::kInvalid, "--percentile-metrics: \"{}\" is none of {}", word, fmt::join(kKnown, ", "));
    }
    out.emplace_back(word);
  }
  return out;
}

Result<std::vector<double>> parse_metric_percentiles(std::string_view text) {
  std::vector<double> out;
  for (const std::string_view word : split_commas(text)) {
    const auto value = parse_number<double>(word);
    if (!value || !(*value >= 0 && *value <= 100)) {
      return fail(ErrorCode::kInvalid, "--metric-percentiles: \"{}\" is no number from 0 to 100", word);
    }
    out.push_back(*value);
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_metadata(std::span<const std::string> pairs) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& pair : pairs) {
    const std::size_t at = pair.find('=');
    if (at == std::string::npos)
      return fail(ErrorCode::kInvalid, "--metadata: \"{}\" is not of the form KEY=VALUE", pair);
    std::string key(trim(std::string_view(pair).substr(0, at)));
    if (key.empty()) return fail(ErrorCode::kInvalid, "--metadata: \"{}\" has no key before the =", pair);
    out.emplace_back(std::move(key), trim(std::string_view(pair).substr(at + 1)));
  }
  return out;
}

std::string result_json(const Run& run, const Summary& summary, const ResultSetup& setup, std::string_view date) {
  Json json = Json::object();
  add_setup(json, setup, date);
  json["duration"] = summary.duration_s;
  json["completed"] = summary.completed;
  json["failed"] = summary.failed;
  json["total_input_tokens"] = summary.input_tokens;
  json["total_output_tokens"] = summary.output_tokens;
  json["request_throughput"] = summary.request_throughput;
  json["request_goodput"] = summary.request_goodput ? Json(*summary.request_goodput) : Json(nullptr);
  json["output_throughput"] = summary.output_throughput;
  json["total_token_throughput"] = summary.total_token_throughput;
  if (setup.detailed) add_lists(json, run.records);
  json["max_output_tokens_per_s"] = summary.max_output_tokens_per_s;
  json["max_concurrent_requests"] = summary.max_concurrent_requests;
  json["rtfx"] = 0.0;  // of audio: none here
  // Also in vLLM's order, whatever the order of the flag.
  const std::pair<const char*, const Distribution*> times[] = {
      {"ttft", &summary.ttft}, {"tpot", &summary.tpot}, {"itl", &summary.itl}, {"e2el", &summary.e2el}};
  for (const auto& [name, values] : times) {
    if (std::ranges::find(setup.percentile_metrics, name) == setup.percentile_metrics.end()) continue;
    add_times(json, name, *values, setup.percentiles);
  }
  return dump_json(json);
}

std::string result_file_name(const ResultSetup& setup, std::string_view date) {
  const std::string rate = setup.request_rate > 0 ? float_text(setup.request_rate) : "inf";
  const std::string concurrency = setup.max_concurrency ? fmt::format("-concurrency{}", *setup.max_concurrency) : "";
  const std::string model = setup.model_id.substr(setup.model_id.rfind('/') + 1);
  const std::string& label = setup.label && !setup.label->empty() ? *setup.label : setup.backend;
  return fmt::format("{}-{}qps{}-{}-{}.json", label, rate, concurrency, model, date);
}

Result<> write_result(const std::filesystem::path& path, std::string_view json, bool append) {
  if (!append) return write_whole(path, json);
  std::error_code error;
  const bool first = !std::filesystem::exists(path, error) || std::filesystem::file_size(path, error) == 0;
  return append_text(path, first ? std::string(json) : "\n" + std::string(json));
}

}  // namespace octet::bench
