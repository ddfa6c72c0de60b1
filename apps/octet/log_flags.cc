#include "apps/octet/log_flags.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <ranges>
#include <utility>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "octet/base/log.h"

using octet::ErrorCode;
using octet::fail;
using octet::Flag;
using octet::Json;
using octet::Result;

namespace {

const Json* member(const Json& object, std::string_view name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// Of a file that configures Python's logging, what has a meaning here: the level of the logger "vllm" or of the root,
// and whether a formatter makes JSON.
Result<> apply_config_file(const std::string& path) {
  OCTET_TRY(const std::string text, octet::read_file(path, std::size_t{1} << 20));
  auto parsed = octet::parse_json(text);
  if (!parsed) return within(path, std::move(parsed).error());
  const Json* loggers = member(*parsed, "loggers");
  const Json* logger = loggers != nullptr ? member(*loggers, "vllm") : nullptr;
  if (logger == nullptr) logger = member(*parsed, "root");
  if (const Json* level = logger != nullptr ? member(*logger, "level") : nullptr) {
    if (!level->is_string()) return fail(ErrorCode::kInvalid, "{}: level is no text", path);
    if (auto set = octet::set_log_level(level->get<std::string>()); !set) return within(path, std::move(set).error());
  }
  const Json* formatters = member(*parsed, "formatters");
  if (formatters == nullptr || !formatters->is_object()) return {};
  for (const Json& formatter : *formatters) {
    const Json* kind = member(formatter, "class");
    if (kind == nullptr) kind = member(formatter, "()");
    if (kind == nullptr || !kind->is_string()) continue;
    if (kind->get<std::string>().find("json") != std::string::npos) octet::set_log_format(octet::LogFormat::kJson);
  }
  return {};
}

// "/health,/metrics"
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

// {"request_latency": [0.1, 1, 10], ...}
Result<octet::engine::HistogramBuckets> parse_buckets(const std::string& text) {
  octet::engine::HistogramBuckets buckets;
  std::vector<double> unused;  // of histograms that are not there
  const std::pair<std::string_view, std::vector<double>*> families[] = {
      {"request_latency", &buckets.request_latency},
      {"time_to_first_token", &buckets.time_to_first_token},
      {"inter_token_latency", &buckets.inter_token_latency},
      {"iteration_tokens", &buckets.iteration_tokens},
      {"request_params_n", &buckets.request_params_n},
      {"request_tokens", &buckets.request_tokens},
      {"kv_cache_residency", &unused}};
  OCTET_TRY(const Json json, octet::parse_json(text));
  if (!json.is_object()) return fail(ErrorCode::kInvalid, "expected a JSON object of lists of numbers");
  for (const auto& [name, bounds] : json.items()) {
    const auto family = std::ranges::find(families, name, [](const auto& known) { return known.first; });
    if (family == std::end(families)) {
      return fail(ErrorCode::kInvalid, "{} is no family of histograms; there are {}", name,
                  fmt::join(families | std::views::keys, ", "));
    }
    const auto is_bound = [](const Json& bound) { return bound.is_number() && bound.get<double>() > 0; };
    const bool good = bounds.is_array() && !bounds.empty() && std::ranges::all_of(bounds, is_bound);
    std::vector<double>& target = *family->second;
    if (good) target = bounds.get<std::vector<double>>();
    if (!good || std::ranges::adjacent_find(target, std::greater_equal<>()) != target.end()) {
      return fail(ErrorCode::kInvalid, "{}: expected a list of numbers above 0, each above the one before", name);
    }
  }
  return buckets;
}

}  // namespace

std::vector<Flag> log_flags(LogFlags& f) {
  constexpr std::string_view group = "log";
  return {
      {.names = "--log-level",
       .group = group,
       .target = &f.level,
       .help = "least level that is logged; Python's names mean the same (CRITICAL is off, NOTSET debug)",
       .choices = "debug,info,warning,error,off,DEBUG,INFO,WARNING,ERROR,CRITICAL,NOTSET"},
      {.names = "--log-format",
       .group = group,
       .target = &f.format,
       .help = "lines of text, or of JSON",
       .choices = "text,json"},
      {.names = "--log-config-file",
       .group = group,
       .target = &f.config_file,
       .help = "JSON that configures Python's logging; only the level and a JSON formatter are taken from it"},
      {.names = "--disable-log-stats",
       .group = group,
       .target = &f.disable_stats,
       .help = "no line about throughput and load every 10 s, and no figures of the engine in /metrics"},
      {.names = "--custom-histogram-buckets",
       .group = group,
       .target = &f.buckets,
       .help = "JSON object of upper bounds for histograms in /metrics, by family, as in "
               "'{\"request_latency\": [0.1, 1, 10]}'",
       .json = true},
      {.names = "--uvicorn-log-level",
       .group = group,
       .target = &f.http_level,
       .help = "info: a line per answered request; debug, trace: of successful probes, too; others: none",
       .choices = "critical,error,warning,info,debug,trace"},
      {.names = "--disable-uvicorn-access-log",
       .group = group,
       .target = &f.disable_access,
       .help = "no line per answered request"},
      {.names = "--disable-access-log-for-endpoints",
       .group = group,
       .target = &f.silent_paths,
       .help = "paths, with commas between, whose requests get no line"},
      {.names = "--log-error-stack",
       .group = group,
       .target = &f.error_stack,
       .help = "a line with the text of every error that a client gets"},
      {.names = "--enable-log-requests",
       .group = group,
       .target = &f.requests,
       .help = "a line with prompt and parameters of every request that is taken in"},
      {.names = "--enable-log-outputs",
       .group = group,
       .target = &f.outputs,
       .help = "a line with the text of every answer; needs --enable-log-requests"},
      {.names = "--enable-log-deltas",
       .group = group,
       .target = &f.deltas,
       .help = "with --enable-log-outputs, a line for every piece of a stream"},
      {.names = "--max-log-len",
       .group = group,
       .target = &f.max_length,
       .help = "most bytes of a prompt or an answer in the log",
       .fallback = "all of it",
       .min = 0,
       .max = std::numeric_limits<std::int32_t>::max()},
  };
}

Result<> start_log(const LogFlags& f) {
  if (f.format == "json") octet::set_log_format(octet::LogFormat::kJson);
  OCTET_TRY_VOID(octet::set_log_level(f.level));
  if (!f.config_file) return {};
  auto applied = apply_config_file(*f.config_file);
  if (!applied) return within("--log-config-file", std::move(applied).error());
  return {};
}

Result<> apply_log_flags(const LogFlags& f, octet::server::ServeOptions& options) {
  if (f.outputs && !f.requests) {
    return fail(ErrorCode::kInvalid, "--enable-log-outputs needs --enable-log-requests");
  }
  if (f.buckets) {
    auto buckets = parse_buckets(*f.buckets);
    if (!buckets) return within("--custom-histogram-buckets", std::move(buckets).error());
    options.replica.histogram_buckets = *std::move(buckets);
  }
  const bool verbose = f.http_level == "debug" || f.http_level == "trace";
  octet::server::RequestLogOptions& log = options.api.log;
  log.answers = !f.disable_access && (verbose || f.http_level == "info");
  log.probes = verbose;
  log.silent_paths = split(f.silent_paths.value_or(""));
  log.errors = f.error_stack;
  log.requests = f.requests;
  log.outputs = f.outputs;
  log.deltas = f.deltas;
  if (f.max_length) log.max_length = static_cast<std::size_t>(*f.max_length);
  options.log_stats = options.api.engine_metrics = !f.disable_stats;
  return {};
}
