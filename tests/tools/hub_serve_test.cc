// `octet serve ORG/NAME`: fetched at the first time, then without a hub.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <sstream>

#include "tests/support/chat_model.h"
#include "tests/support/hub_server.h"
#include "tests/support/interactive_child.h"

namespace octet::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class HubServe : public ::testing::Test {
 protected:
  void SetUp() override {
    write_chat_model(folder_.path());
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      std::stringstream bytes;
      bytes << std::ifstream(file.path(), std::ios::binary).rdbuf();
      hub_.add("org/tiny", file.path().filename(), bytes.str());
    }
    hub_.add("org/tiny", "pytorch_model.bin", "pickled");
  }

  ChildSetup serve(const std::string& model, std::vector<std::string> more = {},
                   std::map<std::string, std::string> variables = {}) const {
    ChildSetup setup{.command = {OCTET_PROGRAM, "serve", model, "--port", "0", "--kv-cache-memory-bytes", "8m"},
                     .environment = hub_.environment(home_.path())};
    setup.command.insert(setup.command.end(), more.begin(), more.end());
    for (auto& [name, value] : variables) setup.environment[name] = value;
    return setup;
  }
  void expect_serves(const ChildSetup& setup) const {
    InteractiveChild server(setup);
    EXPECT_TRUE(server.says("serves org/tiny on")) << server.errors();
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.errors();
  }

  TempFolder folder_, home_;
  HubServer hub_;
};

TEST_F(HubServe, SecondStartNeedsNoHub) {
  expect_serves(serve("org/tiny"));
  EXPECT_THAT(hub_.requests("pytorch_model.bin"), IsEmpty());
  EXPECT_THAT(hub_.requests("/resolve/"), Not(IsEmpty()));
  const std::size_t before = hub_.requests().size();
  expect_serves(serve("org/tiny"));
  EXPECT_EQ(hub_.requests().size(), before);
  expect_serves(serve("org/tiny", {}, {{"HF_ENDPOINT", "http://127.0.0.1:1"}}));
}

TEST_F(HubServe, FlagsOfTheHubAreTaken) {
  hub_.set_rules(R"({"gated": ["org/tiny"]})");
  TempFolder other;
  expect_serves(serve("org/tiny", {"--revision", "refs/pr/1", "--hf-token", "secret", "--download-dir", other.path()}));
  EXPECT_TRUE(std::filesystem::exists(other.path() / "models--org--tiny" / "refs" / "refs" / "pr" / "1"));
}

TEST_F(HubServe, IgnorePatternsAreNotFetched) {
  hub_.add("org/tiny", "special_tokens_map.json", "{}");
  expect_serves(serve("org/tiny", {"--ignore-patterns", "special_*", "*.nothing"}));
  EXPECT_THAT(hub_.requests("special_tokens_map.json"), IsEmpty());
  EXPECT_THAT(hub_.requests("tokenizer.json"), Not(IsEmpty()));
  const ChildResult result = run_to_end(serve("org/tiny", {"--ignore-patterns", "*.safetensors"}));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("model.safetensors"), HasSubstr("--ignore-patterns")));
}

TEST_F(HubServe, TokenizerComesWithoutWeights) {
  InteractiveChild server(serve(folder_.path(), {"--tokenizer", "org/tiny"}));
  EXPECT_TRUE(server.says("requests of the full context")) << server.errors();
  EXPECT_THAT(hub_.requests("tokenizer.json"), Not(IsEmpty()));
  EXPECT_THAT(hub_.requests("model.safetensors"), IsEmpty());
}

TEST_F(HubServe, NameThatIsNeitherPathNorRepositoryIsSaidSo) {
  const ChildResult result = run_to_end(serve("org/nothing"));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("no file or folder org/nothing"), HasSubstr("no repository 'org/nothing'")));
}

}  // namespace
}  // namespace octet::testing
