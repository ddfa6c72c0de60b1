#include "octet/bench/figure_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "octet/base/parse.h"
#include "octet/bench/compare.h"
#include "octet/bench/report_file.h"

namespace octet::bench {
namespace {

constexpr std::size_t kMostBytes = std::size_t{4} << 30;
constexpr JsonLimits kLimits{.max_bytes = kMostBytes, .max_values = 200'000'000};

Result<std::optional<double>> number(const Json& object, const std::string& key) {
  if (!object.contains(key) || object[key].is_null()) return std::nullopt;
  if (!object[key].is_number()) return fail(ErrorCode::kInvalid, "{}: expected a number", key);
  return object[key].get<double>();
}

Result<std::optional<std::int64_t>> count(const Json& object, const std::string& key) {
  OCTET_TRY(const auto value, number(object, key));
  if (!value) return std::nullopt;
  if (!(*value >= 0 && *value < 1e15)) return fail(ErrorCode::kInvalid, "{}: {} is no count", key, *value);
  return static_cast<std::int64_t>(*value);
}

Result<Quantiles> quantiles(const Json& object, std::string_view metric) {
  const auto key = [&](std::string_view what) { return fmt::format("{}_{}_ms", what, metric); };
  Quantiles out;
  OCTET_TRY(out.mean, number(object, key("mean")));
  OCTET_TRY(out.stddev, number(object, key("std")));
  OCTET_TRY(out.p50, number(object, key("median")));
  OCTET_TRY(out.p90, number(object, key("p90")));
  OCTET_TRY(out.p99, number(object, key("p99")));
  return out;
}

Result<RunFigures> result_figures(const Json& object) {
  RunFigures run;
  OCTET_TRY(run.completed, count(object, "completed"));
  OCTET_TRY(run.failed, count(object, "failed"));
  OCTET_TRY(run.input_tokens, count(object, "total_input_tokens"));
  OCTET_TRY(run.output_tokens, count(object, "total_output_tokens"));
  OCTET_TRY(run.duration_s, number(object, "duration"));
  OCTET_TRY(run.request_throughput, number(object, "request_throughput"));
  OCTET_TRY(run.output_throughput, number(object, "output_throughput"));
  OCTET_TRY(run.total_token_throughput, number(object, "total_token_throughput"));
  OCTET_TRY(run.request_goodput, number(object, "request_goodput"));
  OCTET_TRY(run.ttft, quantiles(object, "ttft"));
  OCTET_TRY(run.tpot, quantiles(object, "tpot"));
  OCTET_TRY(run.itl, quantiles(object, "itl"));
  OCTET_TRY(run.e2el, quantiles(object, "e2el"));
  if (!run.request_throughput)
    return fail(ErrorCode::kInvalid,
                "request_throughput is missing: neither a report of octet bench nor a result file");
  return run;
}

// "inf", "2.5" or a number.
Result<double> rate_of(const Json& object) {
  if (!object.contains("request_rate") || object["request_rate"].is_null()) return 0;
  const Json& rate = object["request_rate"];
  if (rate.is_number()) return rate.get<double>();
  const std::string text = rate.is_string() ? rate.get<std::string>() : "";
  if (text == "inf") return 0;
  const auto value = parse_number<double>(text);
  if (!value || !(*value > 0)) return fail(ErrorCode::kInvalid, "request_rate: expected a number or \"inf\"");
  return *value;
}

// Results of one load are repeats of each other.
Result<> add_result(const Json& object, TargetFigures& target) {
  if (!object.is_object()) return fail(ErrorCode::kInvalid, "expected a JSON object");
  OCTET_TRY(RunFigures run, result_figures(object));
  OCTET_TRY(const double rate, rate_of(object));
  OCTET_TRY(const auto concurrency, count(object, "max_concurrency"));
  if (object.contains("model_id") && object["model_id"].is_string()) target.model = object["model_id"];
  const auto places = static_cast<std::int32_t>(std::min<std::int64_t>(concurrency.value_or(0), 1'000'000));
  auto same = std::ranges::find_if(
      target.points, [&](const PointFigures& one) { return one.concurrency == places && one.request_rate == rate; });
  if (same == target.points.end()) {
    target.points.push_back({.concurrency = places, .request_rate = rate, .runs = {}, .within = {}, .violation = {}});
    same = target.points.end() - 1;
  }
  same->runs.push_back(std::move(run));
  return {};
}

Result<ReportFigures> parse_results(std::string_view text) {
  ReportFigures out;
  TargetFigures& target = out.targets.emplace_back();
  if (const auto whole = parse_json(text, kLimits)) {
    OCTET_TRY_VOID(add_result(*whole, target));
    return out;
  }
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto json = parse_json(one, kLimits);
    if (!json) return fail(ErrorCode::kInvalid, "line {}: {}", line, json.error().message);
    if (const auto added = add_result(*json, target); !added)
      return within(fmt::format("line {}", line), added.error());
  }
  if (target.points.empty()) return fail(ErrorCode::kInvalid, "no result in it");
  return out;
}

}  // namespace

Result<ReportFigures> parse_figures(std::string_view text) {
  const auto json = parse_json(text, kLimits);
  if (!json || !json->is_object() || !json->contains("format")) return parse_results(text);
  OCTET_TRY(const Report report, parse_report(text));
  return figures_of(report);
}

Result<ReportFigures> gather_figures(std::span<const std::filesystem::path> paths) {
  ReportFigures all{.title = "octet bench compare"};
  for (const std::filesystem::path& path : paths) {
    const auto text = read_file(path, kMostBytes);
    if (!text) return std::unexpected(text.error());
    auto figures = parse_figures(*text);
    if (!figures) return within(path.string(), figures.error());
    const bool several = figures->targets.size() > 1;
    for (TargetFigures& target : figures->targets) {
      target.name = several ? fmt::format("{}, {}", path.string(), target.name) : path.string();
      if (!all.targets.empty() && compare(all.targets.front(), target).empty())
        return fail(ErrorCode::kInvalid, "{} has no load in common with {}", target.name, all.targets.front().name);
      all.targets.push_back(std::move(target));
    }
  }
  return all;
}

}  // namespace octet::bench
