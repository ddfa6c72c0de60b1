// Flags that decide how a model is read and what it may take, on the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "octet/base/json.h"
#include "tests/support/chat_model.h"
#include "tests/support/http_client.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_folder.h"

namespace octet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kChat = R"({"messages":[{"role":"user","content":"hi"}],"temperature":0})";

class Start : public ::testing::Test {
 protected:
  Start() { write_chat_model(model_); }

  std::vector<std::string> arguments(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {
        model_, "--port", "0", "--threads", "1", "--max-num-batched-tokens", "64", "--kv-cache-memory-bytes", "16m"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // What a chat uses that says nothing of its length.
  std::int64_t output_tokens(const std::vector<std::string>& more) const {
    ServerProcess server(arguments(more));
    EXPECT_TRUE(server.serves()) << server.output();
    const HttpReply reply = http_post(server.port(), "/v1/chat/completions", kChat);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.status == 200 ? reply.json()["usage"]["completion_tokens"].get<std::int64_t>() : -1;
  }
  std::string refusal(const std::vector<std::string>& more, int status) const {
    ServerProcess server(arguments(more));
    EXPECT_EQ(server.wait(), status) << server.output();
    return server.output();
  }

  TempFolder folder_;
  std::string model_ = (folder_.path() / "model").string();
};

// The command line of a deployment, but for its layout and number formats.
TEST_F(Start, ADeploymentsCommand) {
  ServerProcess server({model_, "--tensor-parallel-size", "1", "--enable-expert-parallel",
                        "--distributed-executor-backend", "mp", "--compilation-config",
                        R"({"full_cuda_graph": false, "max_capture_size": 32768})", "--enable-prefix-caching",
                        "--max-model-len", "32768", "--max_num_batched_tokens", "32768", "--gpu-memory-utilization",
                        "0.90", "--trust-remote-code", "--disable-log-requests", "--port", "0"});
  ASSERT_TRUE(server.serves()) << server.output();
  EXPECT_THAT(server.output(), HasSubstr("--compilation-config has no effect here"));
  EXPECT_EQ(http_get(server.port(), "/v1/models").json()["data"][0]["max_model_len"], 32768);
}

TEST_F(Start, SizesAsVllmWritesThem) {
  for (const auto& [written, length] : {std::pair("1k", 1000), {"25.6k", 25600}, {"2K", 2048}}) {
    ServerProcess server(arguments({"--max-model-len", written}));
    ASSERT_TRUE(server.serves()) << server.output();
    EXPECT_EQ(http_get(server.port(), "/v1/models").json()["data"][0]["max_model_len"], length);
  }
  ServerProcess counted(arguments({"--num-gpu-blocks-override", "100", "--max-model-len", "auto"}));
  ASSERT_TRUE(counted.serves()) << counted.output();
  EXPECT_EQ(http_get(counted.port(), "/v1/models").json()["data"][0]["max_model_len"], 1600);
}

TEST_F(Start, DefaultsOfSampling) {
  const auto write = [&](const std::string& path, int tokens) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << R"({"max_new_tokens": )" << tokens << "}";
  };
  write(model_ + "/generation_config.json", 3);
  const std::string other = (folder_.path() / "other").string();
  write(other + "/generation_config.json", 5);
  EXPECT_EQ(output_tokens({}), 3);
  EXPECT_EQ(output_tokens({"--max-model-len", "64", "--generation-config", "vllm"}),
            64 - 20);  // what the prompt leaves
  EXPECT_EQ(output_tokens({"--generation-config", other}), 5);
  EXPECT_EQ(output_tokens({"--generation-config", other, "--override-generation-config", R"({"max_new_tokens": 7})"}),
            7);
  EXPECT_THAT(refusal({"--generation-config", "/no/such/folder"}, 1), HasSubstr("--generation-config: "));
  EXPECT_THAT(refusal({"--override-generation-config", "{temperature: 1}"}, 2),
              HasSubstr("--override-generation-config: "));
  EXPECT_THAT(refusal({"--override-generation-config", R"({"top_p": -1})"}, 1),
              HasSubstr("--override-generation-config: top_p"));
}

TEST_F(Start, AnotherConfiguration) {
  std::ifstream file(model_ + "/config.json");
  Json config = Json::parse(file);
  config["max_position_embeddings"] = 512;
  const auto other = folder_.write("short.json", dump_json(config)).string();
  ServerProcess server(arguments({"--hf-config-path", other}));
  ASSERT_TRUE(server.serves()) << server.output();
  EXPECT_EQ(http_get(server.port(), "/v1/models").json()["data"][0]["max_model_len"], 512);
  EXPECT_THAT(refusal({"--hf-config-path", "/no/such/file"}, 1), HasSubstr("/no/such/file"));
}

TEST_F(Start, HfOverridesChangeTheConfiguration) {
  const auto context = [&](const std::vector<std::string>& more) {
    ServerProcess server(arguments(more));
    EXPECT_TRUE(server.serves()) << server.output();
    return http_get(server.port(), "/v1/models").json()["data"][0]["max_model_len"];
  };
  EXPECT_EQ(context({"--hf-overrides", R"({"max_position_embeddings": 128})"}), 128);
  EXPECT_EQ(context({"--hf-overrides.max_position_embeddings", "256", "--load-format", "dummy"}), 256);
  EXPECT_THAT(refusal({"--hf-overrides", "max_position_embeddings=1"}, 2), HasSubstr("--hf-overrides: "));
  EXPECT_THAT(refusal({"--hf-overrides", "[1]"}, 2), HasSubstr("--hf-overrides [1]: expected a JSON object"));
  EXPECT_THAT(refusal({"--hf-overrides", R"({"hidden_size": "wide"})"}, 1),
              HasSubstr("config.json with --hf-overrides: hidden_size"));
}

TEST_F(Start, DisableSlidingWindow) {
  const std::vector<std::string> windows = {"--hf-overrides", R"({"use_sliding_window": true, "sliding_window": 128})"};
  EXPECT_GT(output_tokens({"--max-model-len", "64", windows[0], windows[1]}), 0);
  std::vector<std::string> disabled = windows;
  disabled.push_back("--disable-sliding-window");
  {
    ServerProcess server(arguments(disabled));
    ASSERT_TRUE(server.serves()) << server.output();
    EXPECT_EQ(http_get(server.port(), "/v1/models").json()["data"][0]["max_model_len"], 128);
  }
  disabled.insert(disabled.end(), {"--max-model-len", "200"});
  EXPECT_THAT(refusal(disabled, 1), HasSubstr("--max-model-len 200: the model was made for 128 positions"));
}

TEST_F(Start, IgnorePatternsLeaveWeightsOut) {
  std::ofstream(model_ + "/model.safetensors.index.json")
      << R"({"weight_map": {"a": "model-00001-of-00001.safetensors"}})";
  EXPECT_THAT(refusal({}, 1), HasSubstr("model-00001-of-00001.safetensors"));
  EXPECT_GT(output_tokens({"--max-model-len", "64", "--ignore-patterns", "*.index.json", "original/"}), 0);
  EXPECT_THAT(refusal({"--ignore-patterns", "model*"}, 1),
              HasSubstr("model.safetensors, which --ignore-patterns leaves out"));
}

TEST_F(Start, KvCacheDtypeIsThatOfTheActivationsOrFp8) {
  EXPECT_GT(output_tokens({"--max-model-len", "64", "--kv-cache-dtype", "auto"}), 0);
  EXPECT_GT(output_tokens({"--max-model-len", "64", "--dtype", "bfloat16", "--kv-cache-dtype", "bfloat16"}), 0);
  EXPECT_THAT(refusal({"--dtype", "bfloat16", "--kv-cache-dtype", "float16"}, 1),
              AllOf(HasSubstr("--kv-cache-dtype float16"), HasSubstr("BF16")));
  EXPECT_GT(output_tokens({"--max-model-len", "64", "--kv-cache-dtype", "fp8"}), 0);
  EXPECT_GT(output_tokens({"--max-model-len", "64", "--kv-cache-dtype", "fp8_e4m3"}), 0);
  EXPECT_THAT(refusal({"--kv-cache-dtype", "fp8_e5m2"}, 2),
              HasSubstr("--kv-cache-dtype fp8_e5m2: not built into this version; supported are auto, bfloat16"));
  EXPECT_THAT(refusal({"--kv-cache-dtype", "fp7"}, 2), HasSubstr("--kv-cache-dtype: must be one of auto, bfloat16"));
}

// Formats that change answers show in the fingerprint, and the cache's in the metrics.
TEST_F(Start, FormatsAreTold) {
  std::set<std::string> fingerprints;
  const auto told = [&](const std::vector<std::string>& more) {
    ServerProcess server(arguments(more));
    EXPECT_TRUE(server.serves()) << server.output();
    const HttpReply reply = http_post(server.port(), "/v1/chat/completions", kChat);
    EXPECT_EQ(reply.status, 200) << reply.body;
    fingerprints.insert(reply.json()["system_fingerprint"].get<std::string>());
    return http_get(server.port(), "/metrics").body;
  };
  EXPECT_THAT(told({"--max-model-len", "64"}), HasSubstr("cache_dtype=\"auto\","));
  EXPECT_THAT(told({"--max-model-len", "64", "--kv-cache-dtype", "fp8"}), HasSubstr("cache_dtype=\"fp8\","));
  told({"--max-model-len", "64", "--quantization", "fp8_per_tensor"});
  told({"--max-model-len", "64", "--quantization", "fp8_per_block"});
  EXPECT_EQ(fingerprints.size(), 4U);
}

TEST_F(Start, QuantizationIsMadeWhileLoading) {
  for (const char* method : {"fp8", "fp8_per_tensor", "fp8_per_block"}) {
    EXPECT_GT(output_tokens({"--max-model-len", "64", "--quantization", method}), 0) << method;
  }
  EXPECT_THAT(refusal({"-q", "awq"}, 1), AllOf(HasSubstr("--quantization awq: "), HasSubstr("fp8_per_block")));
}

// The layers, heads and formats of Qwen3-235B-A22B-Instruct-2507-FP8 scaled down, with noise for weights.
TEST_F(Start, ADeploymentsFormats) {
  const auto json = [](const std::filesystem::path& path) {
    std::ifstream file(path);
    return parse_json(std::string(std::istreambuf_iterator<char>(file), {})).value();
  };
  Json config = json(std::filesystem::path(OCTET_TEST_DATA) / "models/qwen3_moe-fp8-block/config.json");
  const Json own = json(model_ + "/config.json");
  for (const char* key : {"vocab_size", "bos_token_id", "eos_token_id"}) config[key] = own.value(key, Json());
  std::filesystem::remove(model_ + "/model.safetensors");
  std::ofstream(model_ + "/config.json") << dump_json(config);
  EXPECT_GT(output_tokens({"--load-format", "dummy", "--max-model-len", "64", "--quantization", "fp8",
                           "--kv-cache-dtype", "fp8"}),
            0);
  EXPECT_THAT(refusal({"--load-format", "dummy", "--quantization", "modelopt"}, 1),
              AllOf(HasSubstr("--quantization modelopt: "), HasSubstr("is quantized with fp8")));
}

// One line that names the key and its value, whether --quantization confirms the checkpoint's or not.
TEST_F(Start, BlocksThatNothingHoldsAreRefused) {
  const std::filesystem::path golden = std::filesystem::path(OCTET_TEST_DATA) / "models/qwen3-fp8-block";
  std::ifstream file(golden / "config.json");
  Json config = parse_json(std::string(std::istreambuf_iterator<char>(file), {})).value();
  const Json weights = {{"num_bits", 8}, {"type", "float"}, {"strategy", "block"}, {"block_structure", {128, 48}}};
  const auto refused = [&](const Json& quantization, const std::string& named, std::vector<std::string> more) {
    config["quantization_config"] = quantization;
    const std::string changed = folder_.write("blocks.json", dump_json(config)).string();
    more.insert(more.begin(), {golden.string(), "--port", "0", "--hf-config-path", changed, "--skip-tokenizer-init",
                               "--load-format", "dummy"});
    ServerProcess server(more);
    EXPECT_EQ(server.wait(), 1) << server.output();
    EXPECT_THAT(
        server.output(),
        HasSubstr("model.layers.0.self_attn.q_proj.weight: " + named +
                  " [128, 48] gives a scale for every 48 inputs, expected a multiple of 32 of them or whole rows"));
  };
  const Json blocks = {{"quant_method", "fp8"}, {"weight_block_size", {128, 48}}};
  refused(blocks, "weight_block_size", {});
  refused(blocks, "weight_block_size", {"--quantization", "fp8"});
  refused({{"quant_method", "compressed-tensors"}, {"config_groups", {{"group_0", {{"weights", weights}}}}}},
          "block_structure", {});
}

TEST_F(Start, FormatsOfModels) {
  EXPECT_GT(output_tokens({"--load-format", "safetensors", "--max-model-len", "64"}), 0);
  EXPECT_THAT(refusal({"--load-format", "gguf"}, 1), HasSubstr("--load-format: "));
  std::filesystem::remove(model_ + "/model.safetensors");
  EXPECT_THAT(refusal({}, 1), HasSubstr("model.safetensors"));
  EXPECT_GT(output_tokens({"--load-format", "dummy", "--max-model-len", "64"}), 0);
  EXPECT_THAT(refusal({"--load-format", "pt"}, 2), HasSubstr("--load-format"));
}

}  // namespace
}  // namespace octet::testing
