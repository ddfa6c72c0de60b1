#include "octet/bench/report_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "octet/bench/json_reader.h"
#include "octet/bench/whole_file.h"

namespace octet::bench {
namespace {

constexpr std::string_view kFormat = "octet-bench-report";
constexpr int kVersion = 1;
constexpr std::size_t kMaxBytes = std::size_t{4} << 30;
constexpr JsonLimits kLimits{.max_bytes = kMaxBytes, .max_depth = 16, .max_values = 500'000'000};
constexpr std::array<std::string_view, 3> kOutcomes = {"completed", "failed", "cut"};
constexpr std::array<std::string_view, 3> kTokenSources = {"usage", "tokenizer", "chunks"};

// The distributions of a summary, and where a request's times have their samples.
struct TimeKind {
  const char* name;
  Distribution Summary::* distribution;
  void (*add)(const RequestTimes& times, std::vector<double>& samples);
};

template <std::optional<double> RequestTimes::* time>
void add_one(const RequestTimes& times, std::vector<double>& samples) {
  if (times.*time) samples.push_back(*(times.*time));
}

constexpr TimeKind kTimes[] = {
    {"ttft", &Summary::ttft, add_one<&RequestTimes::ttft>},
    {"first_answer", &Summary::first_answer, add_one<&RequestTimes::first_answer>},
    {"tpot", &Summary::tpot, add_one<&RequestTimes::tpot>},
    {"itl", &Summary::itl,
     [](const RequestTimes& times, std::vector<double>& samples) {
       samples.insert(samples.end(), times.itl.begin(), times.itl.end());
     }},
    {"e2el", &Summary::e2el, add_one<&RequestTimes::e2el>},
};

// The samples of all kinds that the completed requests of a run have, ascending. A file tells samples of its own only
// where a summary was made otherwise.
using Samples = std::array<std::vector<double>, std::size(kTimes)>;
Samples samples_of(const Run& run) {
  Samples out;
  for (const RequestRecord& record : run.records) {
    if (record.outcome != Outcome::kCompleted) continue;
    const RequestTimes times = request_times(record);
    for (std::size_t i = 0; i < out.size(); ++i) kTimes[i].add(times, out[i]);
  }
  for (std::vector<double>& samples : out) std::ranges::sort(samples);
  return out;
}

Json record_json(const RequestRecord& record) {
  Json steps = Json::array(), tokens = Json::array();
  std::int64_t before = 0;
  bool single = true;
  for (const Arrival& arrival : record.arrivals) {
    steps.push_back(arrival.ns - std::exchange(before, arrival.ns));
    tokens.push_back(arrival.tokens);
    single = single && arrival.tokens == 1;
  }
  Json json = {{"conversation", record.conversation},
               {"turn", record.turn},
               {"planned_ns", record.planned_ns},
               {"sent_ns", record.sent_ns},
               {"ended_ns", record.ended_ns},
               {"outcome", kOutcomes[static_cast<std::size_t>(record.outcome)]},
               {"error", record.error},
               {"status", record.status},
               {"arrival_steps_ns", std::move(steps)}};
  if (!single) json["arrival_tokens"] = std::move(tokens);
  json["first_answer_ns"] = record.first_answer_ns;
  json["input_tokens"] = record.input_tokens;
  json["output_tokens"] = record.output_tokens;
  json["cached_tokens"] = record.cached_tokens;
  json["token_source"] = kTokenSources[static_cast<std::size_t>(record.token_source)];
  json["text"] = record.text;
  return json;
}

Json run_json(const Run& run) {
  Json records = Json::array();
  for (const RequestRecord& record : run.records) records.push_back(record_json(record));
  return {{"concurrency", run.concurrency},
          {"request_rate", run.request_rate},
          {"duration_ns", run.duration_ns},
          {"interrupted", run.interrupted},
          {"client",
           {{"cpu_share", run.client.cpu_share},
            {"send_lag_p99_ns", run.client.send_lag_p99_ns},
            {"loop_lag_p99_ns", run.client.loop_lag_p99_ns}}},
          {"records", std::move(records)}};
}

Json distribution_json(const Distribution& of, const std::vector<double>& known) {
  Json json = {{"count", of.count}, {"mean", of.mean}, {"stddev", of.stddev}, {"min", of.min}, {"max", of.max}};
  for (const int p : {50, 90, 99}) json[fmt::format("p{}", p)] = of.percentile(p);  // for readers of their own
  if (of.sorted != known) json["samples"] = of.sorted;
  return json;
}

Json summary_json(const Summary& summary, const Samples& known) {
  Json json = {{"completed", summary.completed},
               {"failed", summary.failed},
               {"cut", summary.cut},
               {"input_tokens", summary.input_tokens},
               {"output_tokens", summary.output_tokens},
               {"cached_tokens", summary.cached_tokens},
               {"duration_s", summary.duration_s},
               {"request_throughput", summary.request_throughput},
               {"output_throughput", summary.output_throughput},
               {"total_token_throughput", summary.total_token_throughput},
               {"request_goodput", summary.request_goodput ? Json(*summary.request_goodput) : Json(nullptr)},
               {"max_output_tokens_per_s", summary.max_output_tokens_per_s},
               {"max_concurrent_requests", summary.max_concurrent_requests}};
  Json times = Json::object();
  for (std::size_t i = 0; i < known.size(); ++i) {
    times[kTimes[i].name] = distribution_json(summary.*kTimes[i].distribution, known[i]);
  }
  json["times_ms"] = std::move(times);
  json["errors"] = Json::array();
  for (const auto& [reason, count] : summary.errors) json["errors"].push_back({{"reason", reason}, {"count", count}});
  json["usage_missing"] = summary.usage_missing;
  json["client_bound"] = summary.client_bound;
  return json;
}

Json point_json(const Point& point) {
  Json runs = Json::array(), summaries = Json::array();
  for (const Run& run : point.runs) runs.push_back(run_json(run));
  for (std::size_t i = 0; i < point.summaries.size(); ++i) {
    summaries.push_back(
        summary_json(point.summaries[i], i < point.runs.size() ? samples_of(point.runs[i]) : Samples()));
  }
  return {{"concurrency", point.concurrency},
          {"request_rate", point.request_rate},
          {"summaries", std::move(summaries)},
          {"runs", std::move(runs)}};
}

template <typename Enum>
void read_word(JsonReader& reader, const char* key, std::span<const std::string_view> words, Enum& out) {
  std::string word;
  reader.read(key, word);
  if (reader.failed()) return;
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) {
    return reader.fail_at(key, fmt::format("expected one of {}, found \"{}\"", fmt::join(words, ", "), word));
  }
  out = static_cast<Enum>(found - words.begin());
}

void read_record(JsonReader& reader, RequestRecord& record) {
  reader.read("conversation", record.conversation);
  reader.read("turn", record.turn);
  reader.read("planned_ns", record.planned_ns);
  reader.read("sent_ns", record.sent_ns);
  reader.read("ended_ns", record.ended_ns);
  read_word(reader, "outcome", kOutcomes, record.outcome);
  reader.read("error", record.error);
  reader.read("status", record.status);
  std::vector<std::int64_t> steps;
  std::vector<std::int32_t> tokens;
  reader.read("arrival_steps_ns", steps);
  if (reader.has("arrival_tokens")) {
    reader.read("arrival_tokens", tokens);
    if (tokens.size() != steps.size()) reader.fail_at("arrival_tokens", "expected as many as arrival_steps_ns has");
  } else {
    tokens.assign(steps.size(), 1);
  }
  reader.read("first_answer_ns", record.first_answer_ns);
  reader.read("input_tokens", record.input_tokens);
  reader.read("output_tokens", record.output_tokens);
  reader.read("cached_tokens", record.cached_tokens);
  read_word(reader, "token_source", kTokenSources, record.token_source);
  reader.read("text", record.text);
  if (reader.failed()) return;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (__builtin_add_overflow(at, steps[i], &at)) return reader.fail_at("arrival_steps_ns", "the sum is too large");
    record.arrivals.push_back({at, tokens[i]});
  }
}

void read_run(JsonReader& reader, Run& run) {
  reader.read("concurrency", run.concurrency);
  reader.read("request_rate", run.request_rate);
  reader.read("duration_ns", run.duration_ns);
  reader.read("interrupted", run.interrupted);
  reader.object("client", [&](JsonReader& client) {
    client.read("cpu_share", run.client.cpu_share);
    client.read("send_lag_p99_ns", run.client.send_lag_p99_ns);
    client.read("loop_lag_p99_ns", run.client.loop_lag_p99_ns);
  });
  reader.objects("records", [&](JsonReader& record) { read_record(record, run.records.emplace_back()); });
}

void read_distribution(JsonReader& reader, std::vector<double>& known, Distribution& out) {
  reader.read("count", out.count);
  reader.read("mean", out.mean);
  reader.read("stddev", out.stddev);
  reader.read("min", out.min);
  reader.read("max", out.max);
  if (reader.has("samples")) {
    reader.read("samples", out.sorted);
    if (!std::ranges::is_sorted(out.sorted)) reader.fail_at("samples", "expected ascending numbers");
  } else {
    out.sorted = std::move(known);
    if (static_cast<std::int64_t>(out.sorted.size()) != out.count) {
      reader.fail_at("count", fmt::format("the records have {} samples, not {}", out.sorted.size(), out.count));
    }
  }
}

void read_summary(JsonReader& reader, Samples known, Summary& out) {
  reader.read("completed", out.completed);
  reader.read("failed", out.failed);
  reader.read("cut", out.cut);
  reader.read("input_tokens", out.input_tokens);
  reader.read("output_tokens", out.output_tokens);
  reader.read("cached_tokens", out.cached_tokens);
  reader.read("duration_s", out.duration_s);
  reader.read("request_throughput", out.request_throughput);
  reader.read("output_throughput", out.output_throughput);
  reader.read("total_token_throughput", out.total_token_throughput);
  reader.read("request_goodput", out.request_goodput);
  reader.read("max_output_tokens_per_s", out.max_output_tokens_per_s);
  reader.read("max_concurrent_requests", out.max_concurrent_requests);
  reader.object("times_ms", [&](JsonReader& times) {
    for (std::size_t i = 0; i < known.size(); ++i) {
      times.object(kTimes[i].name,
                   [&](JsonReader& of) { read_distribution(of, known[i], out.*kTimes[i].distribution); });
    }
  });
  reader.objects("errors", [&](JsonReader& error) {
    std::string reason;
    std::int64_t count = 0;
    error.read("reason", reason);
    error.read("count", count);
    out.errors[reason] = count;
  });
  reader.read("usage_missing", out.usage_missing);
  reader.read("client_bound", out.client_bound);
}

void read_point(JsonReader& reader, Point& point) {
  reader.read("concurrency", point.concurrency);
  reader.read("request_rate", point.request_rate);
  reader.objects("runs", [&](JsonReader& run) { read_run(run, point.runs.emplace_back()); });
  reader.objects("summaries", [&](JsonReader& summary) {
    const std::size_t i = point.summaries.size();
    read_summary(summary, i < point.runs.size() ? samples_of(point.runs[i]) : Samples(),
                 point.summaries.emplace_back());
  });
}

void read_target(JsonReader& reader, Target& target) {
  reader.read("name", target.name);
  reader.read("url", target.url);
  reader.read("model", target.model);
  reader.objects("points", [&](JsonReader& point) { read_point(point, target.points.emplace_back()); });
}

}  // namespace

std::string report_json(const Report& report) {
  Json json = {{"format", kFormat},       {"version", kVersion},         {"title", report.title},
               {"date", report.date},     {"workload", report.workload}, {"command", report.command},
               {"slo", Json::array()},    {"notes", report.notes},       {"settings", Json::array()},
               {"targets", Json::array()}};
  for (const SloLimit& limit : report.slo) {
    json["slo"].push_back({{"metric", limit.metric}, {"percentile", limit.percentile}, {"limit_ms", limit.limit_ms}});
  }
  for (const auto& [name, value] : report.settings) json["settings"].push_back({{"name", name}, {"value", value}});
  for (const Target& target : report.targets) {
    Json points = Json::array();
    for (const Point& point : target.points) points.push_back(point_json(point));
    json["targets"].push_back(
        {{"name", target.name}, {"url", target.url}, {"model", target.model}, {"points", std::move(points)}});
  }
  return dump_json(json);
}

Result<Report> parse_report(std::string_view text) {
  OCTET_TRY(const Json json, parse_json(text, kLimits));
  std::optional<Error> error;
  JsonReader reader(json, "", error);
  std::string format;
  int version = 0;
  reader.read("format", format);
  if (!error && format != kFormat) reader.fail_at("format", fmt::format("expected \"{}\"", kFormat));
  reader.read("version", version);
  if (!error && version != kVersion) {
    reader.fail_at("version", fmt::format("{} is not known; this program reads {}", version, kVersion));
  }
  Report report;
  reader.read("title", report.title);
  reader.read("date", report.date);
  reader.read("workload", report.workload);
  reader.read("command", report.command);
  reader.objects("slo", [&](JsonReader& limit) {
    SloLimit& out = report.slo.emplace_back();
    limit.read("metric", out.metric);
    limit.read("percentile", out.percentile);
    limit.read("limit_ms", out.limit_ms);
  });
  reader.read("notes", report.notes);
  reader.objects("settings", [&](JsonReader& setting) {
    auto& [name, value] = report.settings.emplace_back();
    setting.read("name", name);
    setting.read("value", value);
  });
  reader.objects("targets", [&](JsonReader& target) { read_target(target, report.targets.emplace_back()); });
  if (error) return std::unexpected(*std::move(error));
  return report;
}

Result<> write_report(const std::filesystem::path& path, const Report& report) {
  return write_whole(path, report_json(report) + "\n");
}

Result<Report> read_report(const std::filesystem::path& path) {
  OCTET_TRY(const std::string text, read_file(path, kMaxBytes));
  auto report = parse_report(text);
  if (!report) return within(path.string(), std::move(report).error());
  return report;
}

}  // namespace octet::bench
