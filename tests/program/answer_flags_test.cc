// Flags about answers and streams, on the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "octet/base/json.h"
#include "tests/support/chat_model.h"
#include "tests/support/http_client.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_folder.h"

namespace octet::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AnswerFlags : public ::testing::Test {
 protected:
  AnswerFlags() { write_chat_model(model_); }

  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {
        model_, "--port", "0", "--threads", "1", "--max-num-batched-tokens", "64", "--kv-cache-memory-bytes", "16m"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string refusal(const std::vector<std::string>& more) const {
    ServerProcess server(arguments(more));
    EXPECT_EQ(server.wait(), 2) << server.output();
    return server.output();
  }

  TempFolder folder_;
  std::string model_ = (folder_.path() / "model").string();
};

TEST_F(AnswerFlags, ReachTheServer) {
  ServerProcess server(arguments({"--fingerprint-mode",
                                  "custom",
                                  "--fingerprint-value",
                                  "blue",
                                  "--response-role",
                                  "narrator",
                                  "--enable-per-request-metrics",
                                  "--enable-tokenizer-info-endpoint",
                                  "--sse-keep-alive-interval",
                                  "30",
                                  "--stream-interval",
                                  "4",
                                  "--logprobs-mode",
                                  "processed_logprobs",
                                  "--custom-histogram-buckets",
                                  R"({"request_params_n": [3, 9]})",
                                  "--max-num-active-seqs",
                                  "2",
                                  "--max-num-queued-reqs",
                                  "5",
                                  "--max-num-queued-tokens",
                                  "1k",
                                  "--async-scheduling"}));
  ASSERT_TRUE(server.serves()) << server.output();
  const Json chat = http_post(server.port(), "/v1/chat/completions",
                              R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":3,"ignore_eos":true,)"
                              R"("seed":1,"top_k":2,"logprobs":true,"top_logprobs":5})")
                        .json();
  EXPECT_EQ(chat["system_fingerprint"], "blue");
  EXPECT_EQ(chat["choices"][0]["message"]["role"], "narrator");
  EXPECT_TRUE(chat["metrics"].is_object()) << chat;
  // Of a distribution cut to two tokens.
  for (const Json& token : chat["choices"][0]["logprobs"]["content"]) {
    EXPECT_EQ(token["top_logprobs"].size(), 2U) << token;
  }
  const Json info = http_get(server.port(), "/tokenizer_info").json();
  EXPECT_TRUE(info["tokenizer_class"].is_string()) << info;
  EXPECT_TRUE(info["chat_template"].is_string()) << info;
  const MetricText metrics = parse_metrics(http_get(server.port(), "/metrics").body);
  EXPECT_THAT(metrics.bounds("vllm:request_params_n"), ElementsAre("3.0", "9.0", "+Inf"));
  HttpClient client(server.port());
  client.post("/v1/completions", R"({"prompt":"x","max_tokens":9,"ignore_eos":true,"stream":true,)"
                                 R"("return_token_ids":true})");
  ASSERT_EQ(client.read_head().status, 200);
  std::vector<std::size_t> sizes;
  while (const auto event = client.next_event()) {
    const Json chunk = Json::parse(*event, nullptr, false);
    if (chunk.is_object()) sizes.push_back(chunk["choices"][0]["token_ids"].size());
  }
  EXPECT_THAT(sizes, ElementsAre(1, 4, 4));
  EXPECT_EQ(http_post(server.port(), "/v1/completions", R"({"prompt":"x","max_tokens":1,"n":6,"seed":1})").status, 400);
}

TEST_F(AnswerFlags, FingerprintsAreThoseOfTheModel) {
  const auto fingerprint = [&](const std::vector<std::string>& more) {
    ServerProcess server(arguments(more));
    EXPECT_TRUE(server.serves()) << server.output();
    return http_post(server.port(), "/v1/completions", R"({"prompt":"x","max_tokens":1})")
        .json()["system_fingerprint"]
        .get<std::string>();
  };
  const std::string own = fingerprint({"--dtype", "bfloat16"});
  EXPECT_THAT(own, AllOf(HasSubstr("octet-"), HasSubstr("-BF16-")));
  const std::string hash = own.substr(own.rfind('-'));
  EXPECT_THAT(fingerprint({"--dtype", "bfloat16", "--fingerprint-mode", "hash", "--threads", "2"}),
              ::testing::EndsWith(hash));
  EXPECT_THAT(fingerprint({"--dtype", "float32"}), ::testing::Not(::testing::EndsWith(hash)));
}

TEST_F(AnswerFlags, ValuesThatAreNoneNameTheFlag) {
  EXPECT_THAT(refusal({"--fingerprint-mode", "short"}),
              HasSubstr("--fingerprint-mode: must be one of full, hash, custom, none"));
  EXPECT_THAT(refusal({"--logprobs-mode", "raw"}), AllOf(HasSubstr("--logprobs-mode"), HasSubstr("raw_logits")));
  EXPECT_THAT(refusal({"--stream-interval", "0"}), HasSubstr("--stream-interval: must be from 1"));
  EXPECT_THAT(refusal({"--sse-keep-alive-interval", "-1"}), HasSubstr("--sse-keep-alive-interval"));
  EXPECT_THAT(refusal({"--max-num-active-seqs", "5", "--max-num-seqs", "4"}),
              HasSubstr("--max-num-active-seqs 5: at most --max-num-seqs, which is 4"));
  EXPECT_THAT(refusal({"--max-num-queued-tokens", "0"}), HasSubstr("--max-num-queued-tokens"));
}

TEST_F(AnswerFlags, CustomHistogramBucketsAscend) {
  const auto message = [&](const char* json) { return refusal({"--custom-histogram-buckets", json}); };
  EXPECT_THAT(message(R"({"latency": [1]})"),
              AllOf(HasSubstr("--custom-histogram-buckets: latency is no family"), HasSubstr("request_latency")));
  for (const char* bounds : {"[]", "[1, 1]", "[2, 1]", "[0]", "[-1]", "[\"1\"]", "3"}) {
    EXPECT_THAT(message(fmt::format(R"({{"request_latency": {}}})", bounds).c_str()),
                HasSubstr("--custom-histogram-buckets: request_latency: expected a list of numbers above 0"))
        << bounds;
  }
  EXPECT_THAT(message("[1]"), HasSubstr("--custom-histogram-buckets: expected a JSON object"));
  EXPECT_THAT(message("{"), HasSubstr("--custom-histogram-buckets: "));
}

}  // namespace
}  // namespace octet::testing
