// /metrics: every name, label and bucket of vLLM's, and the right values after known requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "octet/base/json.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::HttpClient;
using octet::testing::MetricSample;
using octet::testing::MetricText;
using octet::testing::parse_metrics;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::filesystem::path repository() { return std::filesystem::path(OCTET_TEST_DATA).parent_path().parent_path(); }

std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

MetricText metrics_of(TestServer& server) { return parse_metrics(server.get("/metrics").body); }

constexpr const char* kChat = R"({"messages":[{"role":"user","content":"hi"}],"temperature":0,"max_tokens":5})";

TEST(Metrics, NamesLabelsAndBucketsOfVllm) {
  TestServer server;  // its context has the length of that with which vLLM's were recorded
  ASSERT_EQ(server.post("/v1/chat/completions", kChat).status, 200);
  const MetricText metrics = metrics_of(server);
  int families = 0;
  for (const std::string& line :
       split(text_of(std::filesystem::path(OCTET_TEST_DATA) / "server/vllm_metrics.tsv"), '\n')) {
    const std::vector<std::string> fields = split(line, '\t');
    ASSERT_GE(fields.size(), 3U) << line;
    if (fields[0] == "metric") continue;
    ++families;
    SCOPED_TRACE(fields[0]);
    ASSERT_TRUE(metrics.types.contains(fields[0]));
    EXPECT_EQ(metrics.types.at(fields[0]), fields[1]);
    std::set<std::string> wanted;
    for (const std::string& label : split(fields[2], ',')) wanted.insert(label);
    if (fields[1] == "histogram") {
      EXPECT_THAT(metrics.bounds(fields[0]), ElementsAreArray(split(fields[3], ' ')));
      wanted.insert("le");
    }
    const std::string name = fields[1] == "histogram" ? fields[0] + "_bucket" : fields[0];
    int samples = 0;
    for (const MetricSample& sample : metrics.samples) {
      if (sample.name != name) continue;
      ++samples;
      std::set<std::string> labels;
      for (const auto& [label, value] : sample.labels) labels.insert(label);
      EXPECT_EQ(labels, wanted);
      if (labels.contains("model_name")) EXPECT_EQ(sample.labels.at("model_name"), "M");
    }
    EXPECT_GT(samples, 0);
  }
  EXPECT_EQ(families, 31);
}

TEST(CustomHistogramBuckets, ReplaceThoseOfAFamily) {
  const std::vector<std::string> usual = [] {
    TestServer server;
    return metrics_of(server).bounds("vllm:time_to_first_token_seconds");
  }();
  TestServerOptions options;
  options.histogram_buckets.request_latency = {0.25, 4096};
  options.histogram_buckets.request_tokens = {3, 4};
  options.histogram_buckets.request_params_n = {7};
  options.histogram_buckets.iteration_tokens = {1.5};
  options.histogram_buckets.inter_token_latency = {100};
  TestServer server(std::move(options));
  ASSERT_EQ(server.post("/v1/completions", R"({"prompt":"abc","max_tokens":4})").status, 200);
  const MetricText metrics = metrics_of(server);
  const auto expect = [&](std::initializer_list<const char*> names, const std::vector<double>& wanted) {
    for (const char* name : names) {
      std::vector<double> bounds;
      for (const std::string& bound : metrics.bounds(name)) bounds.push_back(std::strtod(bound.c_str(), nullptr));
      bounds.pop_back();  // +Inf
      EXPECT_EQ(bounds, wanted) << name;
    }
  };
  expect({"vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds", "vllm:request_inference_time_seconds",
          "vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds"},
         {0.25, 4096});
  expect({"vllm:request_prompt_tokens", "vllm:request_generation_tokens", "vllm:request_max_num_generation_tokens",
          "vllm:request_params_max_tokens", "vllm:request_prefill_kv_computed_tokens"},
         {3, 4});
  expect({"vllm:request_params_n"}, {7});
  expect({"vllm:iteration_tokens_total"}, {1.5});
  expect({"vllm:inter_token_latency_seconds", "vllm:request_time_per_output_token_seconds"}, {100});
  EXPECT_EQ(metrics.bounds("vllm:time_to_first_token_seconds"), usual);
  EXPECT_EQ(metrics.value("vllm:request_prompt_tokens_bucket", {{"le", "3.0"}}), 1);
  EXPECT_EQ(metrics.value("vllm:request_generation_tokens_bucket", {{"le", "3.0"}}), 0);
  EXPECT_EQ(metrics.value("vllm:request_generation_tokens_bucket", {{"le", "4.0"}}), 1);
  EXPECT_EQ(metrics.value("vllm:e2e_request_latency_seconds_bucket", {{"le", "4096.0"}}), 1);
}

// As Python's client writes them; dashboards and alerts find a bucket by this text.
TEST(CustomHistogramBuckets, BoundsAreWrittenAsVllmWritesThem) {
  TestServerOptions options;
  options.histogram_buckets.request_tokens = {0.5, 1, 20, 100'000, 1'000'000, 1'250'000};
  TestServer server(std::move(options));
  EXPECT_THAT(metrics_of(server).bounds("vllm:request_prompt_tokens"),
              ElementsAre("0.5", "1.0", "20.0", "100000.0", "1e+06", "1.25e+06", "+Inf"));
}

TEST(Metrics, ValuesOfKnownRequests) {
  TestServer server;
  const std::string prompt(40, 'p');
  const std::string body = R"({"prompt":")" + prompt + R"(","max_tokens":4,"ignore_eos":true)";
  ASSERT_EQ(server.post("/v1/completions", body + "}").status, 200);
  ASSERT_EQ(server.post("/v1/completions", body + "}").status, 200);
  ASSERT_EQ(server.post("/v1/completions", body + R"(,"n":2,"seed":1,"stop":"He"})").status, 200);
  ASSERT_EQ(server.post("/v1/completions", R"({"prompt":"x","max_tokens":0})").status, 400);
  ASSERT_EQ(server.get("/nowhere").status, 404);
  ASSERT_TRUE(server.comes_to_rest());
  const MetricText metrics = metrics_of(server);
  const auto expect = [&](const char* name, double value, const std::map<std::string, std::string>& labels = {}) {
    EXPECT_EQ(metrics.value(name, labels), value) << name;
  };
  expect("vllm:prompt_tokens_total", 160);
  expect("vllm:prompt_tokens_cached_total", 96);  // two of three blocks, three times
  expect("vllm:prompt_tokens_by_source_total", 64, {{"source", "local_compute"}});
  expect("vllm:prompt_tokens_by_source_total", 96, {{"source", "local_cache_hit"}});
  expect("vllm:prefix_cache_queries_total", 160);
  expect("vllm:prefix_cache_hits_total", 96);
  expect("vllm:generation_tokens_total", 4 + 4 + 2 + 2);
  expect("vllm:request_success_total", 2, {{"finished_reason", "length"}});
  expect("vllm:request_success_total", 2, {{"finished_reason", "stop"}});
  expect("vllm:request_success_total", 0, {{"finished_reason", "abort"}});
  expect("vllm:request_prompt_tokens_count", 4);
  expect("vllm:request_prompt_tokens_sum", 160);
  expect("vllm:request_prompt_tokens_bucket", 0, {{"le", "20.0"}});
  expect("vllm:request_prompt_tokens_bucket", 4, {{"le", "50.0"}});
  expect("vllm:request_generation_tokens_sum", 12);
  expect("vllm:request_max_num_generation_tokens_count", 3);
  expect("vllm:request_max_num_generation_tokens_sum", 4 + 4 + 2);
  expect("vllm:request_params_n_sum", 1 + 1 + 2);
  expect("vllm:request_params_n_count", 3);
  expect("vllm:request_params_max_tokens_sum", 16);
  expect("vllm:request_prefill_kv_computed_tokens_sum", 64);
  expect("vllm:request_num_preemptions_sum", 0);
  expect("vllm:num_preemptions_total", 0);
  expect("vllm:time_to_first_token_seconds_count", 4);
  expect("vllm:inter_token_latency_seconds_count", 8);
  for (const char* name : {"vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
                           "vllm:request_inference_time_seconds", "vllm:request_prefill_time_seconds",
                           "vllm:request_decode_time_seconds", "vllm:request_time_per_output_token_seconds"}) {
    expect((std::string(name) + "_count").c_str(), 4);
  }
  expect("vllm:num_requests_running", 0);
  expect("vllm:num_requests_waiting", 0);
  expect("vllm:kv_cache_usage_perc", 0);
  expect(
      "vllm:cache_config_info", 1,
      {{"block_size", "16"}, {"num_gpu_blocks", "4096"}, {"enable_prefix_caching", "True"}, {"cache_dtype", "auto"}});
  expect("octet:http_requests_total", 3, {{"route", "/v1/completions"}, {"status", "200"}});
  expect("octet:http_requests_total", 1, {{"route", "/v1/completions"}, {"status", "400"}});
  expect("octet:http_requests_total", 1, {{"route", "other"}, {"status", "404"}});
  expect("octet:kv_blocks", 4096);
  expect("octet:kv_blocks", 0, {{"state", "owned"}});
}

TEST(Metrics, AClientThatLeavesIsAnAbort) {
  TestServerOptions options;
  options.step_time = std::chrono::milliseconds(2);
  TestServer server(std::move(options));
  {
    HttpClient client(server.port());
    client.post("/v1/completions", R"({"prompt":"x","max_tokens":1500,"stream":true})");
    ASSERT_EQ(client.read_head().status, 200);
    const MetricText running = metrics_of(server);
    EXPECT_EQ(running.value("vllm:num_requests_running"), 1);
    EXPECT_GT(running.value("vllm:kv_cache_usage_perc"), 0);
  }
  ASSERT_TRUE(server.comes_to_rest());
  ASSERT_TRUE(octet::testing::eventually(
      [&] { return metrics_of(server).value("octet:http_requests_total", {{"route", "/v1/completions"}}) == 1; }));
  const MetricText metrics = metrics_of(server);
  EXPECT_EQ(metrics.value("vllm:request_success_total", {{"finished_reason", "abort"}}), 1);
  EXPECT_EQ(metrics.value("vllm:request_success_total"), 1);
  EXPECT_EQ(metrics.value("vllm:e2e_request_latency_seconds_count"), 0);
  EXPECT_EQ(metrics.value("vllm:time_to_first_token_seconds_count"), 1);
}

TEST(Metrics, WithoutStatisticsOnlyTheServersOwn) {
  TestServerOptions options;
  options.api.engine_metrics = false;
  TestServer server(std::move(options));
  ASSERT_EQ(server.post("/v1/chat/completions", kChat).status, 200);
  const MetricText metrics = metrics_of(server);
  EXPECT_EQ(metrics.value("octet:http_requests_total", {{"status", "200"}}), 1);
  EXPECT_EQ(metrics.value("vllm:admission_rejections_total"), 0);
  EXPECT_FALSE(metrics.types.contains("vllm:num_requests_running"));
}

TEST(Metrics, LoadOfExperts) {
  TestServerOptions options;
  options.experts = true;
  TestServer server(std::move(options));
  EXPECT_EQ(metrics_of(server).value("octet:expert_rows_total", {{"expert", "3"}}), 0);
  EXPECT_FALSE(metrics_of(server).types.contains("octet:expert_imbalance"));
  ASSERT_EQ(server.post("/v1/completions", R"({"prompt":"12345678","max_tokens":1})").status, 200);
  const MetricText metrics = metrics_of(server);
  for (const auto& [expert, rows] : {std::pair("0", 2), std::pair("1", 2), std::pair("2", 2), std::pair("3", 2 + 8)}) {
    EXPECT_EQ(metrics.value("octet:expert_rows_total", {{"expert", expert}}), rows) << expert;
  }
  EXPECT_EQ(metrics.value("octet:expert_imbalance", {{"layer", "0"}}), 1);
  EXPECT_EQ(metrics.value("octet:expert_imbalance", {{"layer", "1"}}), 4);
  TestServer dense;
  ASSERT_EQ(dense.post("/v1/completions", R"({"prompt":"12345678","max_tokens":1})").status, 200);
  EXPECT_FALSE(metrics_of(dense).types.contains("octet:expert_rows_total"));
}

// | `name` | type | what |
TEST(Metrics, TheTableOfTheDocumentationIsWhatIsExported) {
  TestServerOptions options;
  options.experts = true;
  TestServer server(std::move(options));
  ASSERT_EQ(server.post("/v1/chat/completions", kChat).status, 200);
  const MetricText metrics = metrics_of(server);
  std::map<std::string, std::string> documented;
  for (const std::string& line : split(text_of(repository() / "docs/operations.md"), '\n')) {
    if (!line.starts_with("| `vllm:") && !line.starts_with("| `octet:")) continue;
    const std::size_t end = line.find('`', 3);
    documented[line.substr(3, end - 3)] = line.substr(end + 1);
  }
  std::map<std::string, std::string> exported;
  for (const auto& [name, type] : metrics.types) {
    exported[name] = " | " + type + " | " + metrics.helps.at(name) + " |";
  }
  EXPECT_EQ(documented, exported);
}

// Names in PromQL, without the suffixes of histograms.
std::set<std::string> names_in(const std::string& query) {
  std::set<std::string> names;
  for (std::size_t at = 0; at < query.size(); ++at) {
    if (query.compare(at, 5, "vllm:") != 0 && query.compare(at, 6, "octet:") != 0) continue;
    const std::size_t end = query.find_first_not_of("abcdefghijklmnopqrstuvwxyz_:0123456789", at);
    names.insert(query.substr(at, end - at));
    at = std::min(query.size(), end) - 1;
  }
  return names;
}

TEST(Metrics, TheDashboardAsksForNothingElse) {
  TestServer server;
  ASSERT_EQ(server.post("/v1/chat/completions", kChat).status, 200);
  std::set<std::string> known;
  for (const MetricSample& sample : metrics_of(server).samples) known.insert(sample.name);
  const auto dashboard = parse_json(text_of(repository() / "deploy/grafana.json"));
  ASSERT_TRUE(dashboard.has_value()) << dashboard.error().message;
  int queries = 0;
  for (const Json& panel : (*dashboard)["panels"]) {
    if (!panel.contains("targets")) continue;
    for (const Json& target : panel["targets"]) {
      const std::set<std::string> names = names_in(target["expr"].get<std::string>());
      EXPECT_FALSE(names.empty()) << target["expr"];
      for (const std::string& name : names) EXPECT_TRUE(known.contains(name)) << name;
      ++queries;
    }
  }
  EXPECT_GT(queries, 20);
}

}  // namespace
}  // namespace octet::server
