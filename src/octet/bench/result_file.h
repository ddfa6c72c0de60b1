// The result file of one run in the form of `vllm bench serve --save-result`: one flat JSON object, so that scripts
// that read those keep working.
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/base/error.h"
#include "octet/bench/report.h"

namespace octet::bench {

// What the file tells beside the figures: the flags of the run.
struct ResultSetup {
  std::string backend = "openai", model_id;
  std::optional<std::string> label, tokenizer_id;
  std::int64_t num_prompts = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  // later keys of the file win over an equal one
  double request_rate = 0;                                    // per second; 0: "inf"
  double burstiness = 1;
  std::optional<std::int64_t> max_concurrency;
  std::vector<std::string> percentile_metrics = {"ttft", "tpot", "itl"};
  std::vector<double> percentiles = {99};
  bool detailed = false;  // with the lists of --save-detailed
};

// Values of --percentile-metrics (ttft, tpot, itl, e2el), --metric-percentiles ("50,90,99.9") and --metadata (KEY=VALUE
// each); errors name the flag and the word.
Result<std::vector<std::string>> parse_percentile_metrics(std::string_view text);
Result<std::vector<double>> parse_metric_percentiles(std::string_view text);
Result<std::vector<std::pair<std::string, std::string>>> parse_metadata(std::span<const std::string> pairs);

// date: "20260131-235959", local time, as vLLM writes it. Lists are in the order of the records, in seconds;
// start_times and with them ttfts and latencies count from the planned time, queue_times tell how much later a request
// was sent. What a request does not have (the TTFT of a failed one) is null, never zero.
std::string result_json(const Run& run, const Summary& summary, const ResultSetup& setup, std::string_view date);

// {label or backend}-{rate}qps[-concurrency{n}]-{last part of the model's name}-{date}.json
std::string result_file_name(const ResultSetup& setup, std::string_view date);

// The file is made whole or not at all. append: the object becomes a further line of a file that may be there. Folders
// that are missing are made.
Result<> write_result(const std::filesystem::path& path, std::string_view json, bool append);

}  // namespace octet::bench
