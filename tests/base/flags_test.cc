#include "octet/base/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace octet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Options {
  std::optional<std::string> model;
  std::string host = "127.0.0.1";
  std::int64_t port = 8000;
  std::optional<std::int64_t> max_model_len;
  double watermark = 0.25;
  bool prefix_caching = true;
  std::optional<bool> chunked;
  std::string dtype = "auto";
  std::string overrides = "{}";
  std::vector<std::string> names;
  std::string config;
};

FlagTable make_table(Options& options) {
  const Flag flags[] = {
      {"MODEL", "Model", &options.model, "a folder or a GGUF file"},
      {"--dtype", "Model", &options.dtype, "arithmetic", FlagClass::kBuilt, "", "auto,float32,bfloat16"},
      {"--max-model-len", "Model", &options.max_model_len, "longest sequence", FlagClass::kBuilt, "the model's own"},
      {"--served-model-name", "Model", &options.names, "names in the API"},
      {.names = "--hf-overrides",
       .group = "Model",
       .target = &options.overrides,
       .help = "keys of config.json",
       .json = true},
      {.names = "--port -p", .group = "Server", .target = &options.port, .help = "TCP port", .min = 0, .max = 65535},
      {"--host", "Server", &options.host, "address"},
      {"--config", "Server", &options.config, "YAML file"},
      {.names = "--watermark", .group = "Engine", .target = &options.watermark, .help = "share kept free", .min = 0},
      {"--enable-prefix-caching", "Engine", &options.prefix_caching, "reuse prefixes"},
      {"--enable-chunked-prefill", "Engine", &options.chunked, "split prompts"},
      {"--enforce-eager", "Engine", FlagShape::kSwitch, "this build captures no graphs", FlagClass::kAccepted},
      {"--compilation-config -cc", "Engine", FlagShape::kValue, "nothing is compiled", FlagClass::kAccepted},
      {"--max-loras", "Engine", FlagShape::kValue, "LoRA adapters", FlagClass::kLater, "1"},
      {"--enable-lora", "Engine", FlagShape::kSwitch, "LoRA adapters", FlagClass::kLater},
      {"--async", "Engine", FlagShape::kSwitch, "leaving the default", FlagClass::kLater, "True"},
      {"--lora-modules", "Engine", FlagShape::kList, "LoRA adapters", FlagClass::kLater},
      {"--nnodes -n", "Engine", FlagShape::kValue, "several nodes", FlagClass::kLater, "1"},
  };
  return FlagTable("octet serve", "serve a model", flags);
}

// Parses words; gives the error's message, or "" after success.
std::string parse(FlagTable& table, std::vector<std::string> words) {
  auto result = table.parse(words);
  return result ? "" : result.error().message;
}

std::string parse(Options& options, std::vector<std::string> words) {
  auto table = make_table(options);
  return parse(table, std::move(words));
}

TEST(Flags, StoresEveryType) {
  Options options;
  ASSERT_EQ(parse(options, {"dir", "--port", "80", "--host=::1", "--max-model-len", "4k", "--watermark", "0.5",
                            "--no-enable-prefix-caching", "--enable-chunked-prefill", "--served-model-name", "a", "b"}),
            "");
  EXPECT_EQ(options.model, "dir");
  EXPECT_EQ(options.port, 80);
  EXPECT_EQ(options.host, "::1");
  EXPECT_EQ(options.max_model_len, 4000);
  EXPECT_EQ(options.watermark, 0.5);
  EXPECT_FALSE(options.prefix_caching);
  EXPECT_EQ(options.chunked, true);
  EXPECT_THAT(options.names, ElementsAre("a", "b"));
}

TEST(Flags, LeavesDefaultsAlone) {
  Options options;
  ASSERT_EQ(parse(options, {}), "");
  EXPECT_EQ(options.port, 8000);
  EXPECT_EQ(options.chunked, std::nullopt);
  EXPECT_EQ(options.model, std::nullopt);
  EXPECT_TRUE(options.prefix_caching);
}

TEST(Flags, UnderscoreEqualsDashInNamesOnly) {
  Options options;
  ASSERT_EQ(parse(options, {"--served_model_name=my_model", "--max_model-len", "7", "--no_enable_prefix_caching"}), "");
  EXPECT_THAT(options.names, ElementsAre("my_model"));
  EXPECT_EQ(options.max_model_len, 7);
  EXPECT_FALSE(options.prefix_caching);
}

TEST(Flags, TakesShortNamesAndTheLastOfTwo) {
  Options options;
  ASSERT_EQ(parse(options, {"-p", "1", "-p=2", "--enable-chunked-prefill", "--no-enable-chunked-prefill"}), "");
  EXPECT_EQ(options.port, 2);
  EXPECT_EQ(options.chunked, false);
}

TEST(Flags, KeepsJsonValuesAsTheyAre) {
  for (std::string value : {"{}", "[1,2]", R"({"a": [1, -2], "b": "--x=y"})", ""}) {
    Options options;
    ASSERT_EQ(parse(options, {"--hf-overrides=" + value, "--served-model-name", "[a,b]"}), "");
    EXPECT_EQ(options.overrides, value);
    EXPECT_THAT(options.names, ElementsAre("[a,b]"));
  }
}

TEST(Flags, MembersOfAJsonValueAreGivenByTheirKeys) {
  Options options;
  ASSERT_EQ(parse(options, {"--hf_overrides.rope_scaling.factor=2.5", "--hf-overrides", R"({"a": [1], "b": {"c": 1}})",
                            "--hf-overrides.rope_scaling.type", "yarn", "--hf-overrides.b.d", "null",
                            "--hf-overrides.e={\"f\": true}"}),
            "");
  EXPECT_EQ(options.overrides,
            R"({"rope_scaling":{"factor":2.5,"type":"yarn"},"a":[1],"b":{"c":1,"d":null},"e":{"f":true}})");
  EXPECT_EQ(parse(options, {"--hf-overrides.a"}), "--hf-overrides.a: a value is missing");
  EXPECT_EQ(parse(options, {"--hf-overrides.=1"}), "--hf-overrides.=1: a key is missing");
  EXPECT_EQ(parse(options, {"--hf-overrides.a=1", "--hf-overrides", "[1]"}),
            "--hf-overrides: expected a JSON object, got [1]");
}

TEST(Flags, NegativeNumbersAreValues) {
  Options options;
  ASSERT_EQ(parse(options, {"--max-model-len", "-1"}), "");
  EXPECT_EQ(options.max_model_len, -1);
}

TEST(Flags, UnknownFlagNamesTheNearest) {
  Options options;
  EXPECT_THAT(parse(options, {"--max_modle_len", "4"}),
              HasSubstr("--max-modle-len: no such flag; the nearest is --max-model-len"));
  EXPECT_THAT(parse(options, {"--enable-prefix"}), HasSubstr("--enable-prefix-caching"));
  EXPECT_THAT(parse(options, {"-z"}), HasSubstr("-z: no such flag"));
  EXPECT_THAT(parse(options, {"--no-port"}), HasSubstr("--no-port: no such flag"));
}

TEST(Flags, BadValuesNameTheFlag) {
  Options options;
  EXPECT_THAT(parse(options, {"--port", "http"}), HasSubstr("--port: expected a whole number"));
  EXPECT_THAT(parse(options, {"--port", "65536"}), HasSubstr("--port: must be from 0 to 65535, got 65536"));
  EXPECT_THAT(parse(options, {"--watermark=-0.5"}), HasSubstr("--watermark: must be at least 0"));
  EXPECT_THAT(parse(options, {"--watermark=nan"}), HasSubstr("--watermark: expected a number"));
  EXPECT_THAT(parse(options, {"--dtype", "int8"}), HasSubstr("--dtype: must be one of auto, float32, bfloat16"));
  EXPECT_THAT(parse(options, {"--enable-prefix-caching=maybe"}), HasSubstr("--enable-prefix-caching"));
  EXPECT_THAT(parse(options, {"--port"}), HasSubstr("--port"));
  EXPECT_THAT(parse(options, {"one", "two"}), HasSubstr("two"));
  EXPECT_EQ(options.port, 8000);
}

TEST(Flags, AcceptedFlagsGiveOneNote) {
  Options options;
  auto table = make_table(options);
  ASSERT_EQ(parse(table, {"--enforce-eager", "-cc.mode=3", "--compilation_config.level", "2"}), "");
  EXPECT_THAT(table.notes(), ElementsAre("--enforce-eager has no effect here: this build captures no graphs",
                                         "--compilation-config has no effect here: nothing is compiled"));
  EXPECT_TRUE(table.given("--enforce-eager"));
  EXPECT_FALSE(table.given("--port"));
}

TEST(Flags, LaterFlagsPassOnlyAtTheirDefault) {
  Options options;
  EXPECT_EQ(parse(options, {"--max-loras", "1", "--no-enable-lora", "--async", "-n", "1.0", "--lora-modules", "None"}),
            "");
  EXPECT_THAT(parse(options, {"--max-loras", "2"}),
              HasSubstr("--max-loras: not built into this version: LoRA adapters"));
  EXPECT_THAT(parse(options, {"--enable-lora"}), HasSubstr("LoRA adapters"));
  EXPECT_THAT(parse(options, {"--no-async"}), HasSubstr("leaving the default"));
  EXPECT_THAT(parse(options, {"-n", "2"}), HasSubstr("--nnodes: not built into this version: several nodes"));
  EXPECT_THAT(parse(options, {"--lora-modules", "a", "b"}), HasSubstr("LoRA adapters"));
}

TEST(Flags, HelpShowsBuiltFlagsWithDefaults) {
  Options options;
  auto table = make_table(options);
  ASSERT_EQ(parse(table, {"-h"}), "");
  ASSERT_TRUE(table.wants_help());
  EXPECT_THAT(table.help(), HasSubstr("usage: octet serve [flags] [MODEL]"));
  EXPECT_THAT(table.help(), HasSubstr("TCP port (default: 8000)"));
  EXPECT_THAT(table.help(), HasSubstr("arithmetic [auto, float32, bfloat16] (default: auto)"));
  EXPECT_THAT(table.help(), HasSubstr("longest sequence (default: the model's own)"));
  EXPECT_THAT(table.help(), HasSubstr("reuse prefixes (on; --no-enable-prefix-caching)"));
  EXPECT_THAT(table.help(), Not(HasSubstr("--max-loras")));
  EXPECT_THAT(table.help(true), HasSubstr("not in this version: LoRA adapters"));
  EXPECT_THAT(table.search("TCP"), HasSubstr("--port"));
  EXPECT_THAT(table.search("MAX_LORAS"), HasSubstr("--max-loras"));
  EXPECT_THAT(table.search("tcp"), Not(HasSubstr("--max-loras")));
  EXPECT_THAT(table.search("nothing of the kind"), HasSubstr("no flag speaks of 'nothing of the kind'"));
  EXPECT_THAT(table.markdown(), HasSubstr("| `--port, -p N` | TCP port (default: 8000) |"));
}

class FlagsConfig : public ::testing::Test {
 protected:
  std::string file(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_ = ::testing::TempDir() + "octet_flags_test.yaml";
};

TEST_F(FlagsConfig, CommandLineOverridesTheFile) {
  Options options;
  auto path = file(
      "port: 9000\nhost: '::'\nmax_model_len: 25.6k\nenable-prefix-caching: false\nserved-model-name: [a, \"b c\"]\n"
      "hf-overrides: {rope: {factor: 2, type: yarn}, ok: [true, '1']}\n");
  ASSERT_EQ(parse(options, {"--port", "1", "--config", path}), "");
  EXPECT_EQ(options.port, 1);
  EXPECT_EQ(options.host, "::");
  EXPECT_EQ(options.max_model_len, 25600);
  EXPECT_FALSE(options.prefix_caching);
  EXPECT_THAT(options.names, ElementsAre("a", "b c"));
  EXPECT_EQ(options.overrides, R"({"rope": {"factor": 2, "type": "yarn"}, "ok": [true, "1"]})");
}

TEST_F(FlagsConfig, ErrorsNameFileAndFlag) {
  Options options;
  for (auto [text, expected] :
       std::vector<std::pair<std::string, std::string>>{{"prot: 1", "--prot: no such flag; the nearest is --port"},
                                                        {"port: x", "--port: expected a whole number"},
                                                        {"- a", "expected a map"},
                                                        {"a: [", ""},
                                                        {"max-loras: 2", "LoRA adapters"}}) {
    auto message = parse(options, {"--config", file(text)});
    EXPECT_THAT(message, HasSubstr(path_)) << text;
    EXPECT_THAT(message, HasSubstr(expected)) << text;
  }
  EXPECT_THAT(parse(options, {"--config", path_ + ".none"}), HasSubstr("--config: " + path_ + ".none: "));
  EXPECT_EQ(parse(options, {"--port"}), "--port: a value is missing");
}

TEST(ParseSize, ReadsWholeNumbers) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("-1"), -1);
  EXPECT_EQ(parse_size("1k"), 1000);
  EXPECT_EQ(parse_size("1K"), 1024);
  EXPECT_EQ(parse_size("25.6k"), 25600);
  EXPECT_EQ(parse_size("2G"), std::int64_t{2} << 30);
  EXPECT_EQ(parse_size("9223372036854775807"), INT64_MAX);
  for (auto text :
       {"", "k", "1.5", "1.0001k", "0x10", "1 k", "1kk", "9223372036854775808", "9000000000G", "1e30k", "nan"})
    EXPECT_FALSE(parse_size(text)) << text;
}

}  // namespace
}  // namespace octet
