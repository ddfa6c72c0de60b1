// OPS-03: paths are bytes, in every option and file, whatever the locale and wherever the program was started; API-01:
// a model's name is never one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "octet/base/json.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/chat_model.h"
#include "tests/support/http_client.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOddName = "mod\xc3\xa8le \xe6\xa8\xa1\xe5\x9e\x8b (v1)";
constexpr const char* kOddPart = "w+x%20y";

// Two shards with odd names, and the index that lists them.
void write_sharded(const fs::path& folder) {
  TinyModel model = make_tiny_model();
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << model.config;
  Json map;
  TestTensors shards[2];
  const std::string names[2] = {"teil 1 \xc3\xa9+.safetensors", "\xe6\xa8\xa1%20.safetensors"};
  std::size_t number = 0;
  for (auto& [name, tensor] : model.tensors) {
    const std::size_t shard = number++ % 2;
    map[name] = names[shard];
    shards[shard].emplace(name, tensor);
  }
  for (std::size_t i = 0; i < 2; ++i) write_safetensors(folder / names[i], shards[i]);
  Json index;
  index["weight_map"] = map;
  std::ofstream(folder / "model.safetensors.index.json") << dump_json(index);
}

TEST(Ops03, PathsAreBytesInEveryLocale) {
  const TempFolder folder;
  const fs::path model = folder.path() / kOddName / kOddPart;
  write_sharded(model);
  for (const char* locale : {"C", "POSIX", "C.UTF-8", "no_such.LOCALE"}) {
    const Surroundings surroundings{.environment = {{"LC_ALL", locale}, {"LANG", locale}}};
    ServerProcess server({model.string(), "--skip-tokenizer-init", "--port", "0", "--kv-cache-memory-bytes", "8m"},
                         surroundings);
    ASSERT_TRUE(server.serves()) << locale << "\n" << server.output();
    EXPECT_EQ(http_get(server.port(), "/v1/models").json().at("data").at(0).at("id"), model.string()) << locale;
  }
}

TEST(Ops03, EveryOptionTakesOddPaths) {
  const TempFolder folder;
  const fs::path odd = folder.path() / kOddName;
  write_chat_model(odd / kOddPart);
  const auto write = [&](const std::string& name, const std::string& text) {
    const fs::path path = odd / (name + " \xc3\xbc%2B+");
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  };
  std::ifstream config(odd / kOddPart / "config.json");
  Json changed = Json::parse(config);
  changed["max_position_embeddings"] = 321;
  fs::create_directories(odd / "generation \xc3\xbc");
  std::ofstream(odd / "generation \xc3\xbc" / "generation_config.json") << R"({"max_new_tokens": 3})";
  const std::string template_file = write("template", "{{ messages[0].content }}\xe6\xa8\xa1");
  const std::string flags = write(
      "flags", fmt::format("served-model-name: \"{}\"\nchat-template: \"{}\"\n", "\xe6\xa8\xa1 name", template_file));
  const fs::path tokenizer = odd / "tokenizer \xc3\xbc%2B+";
  fs::create_directories(tokenizer);
  std::ofstream(tokenizer / "tokenizer.json") << byte_tokenizer_json();
  const Surroundings surroundings{.environment = {{"LC_ALL", "C"}}};
  ServerProcess server({(odd / kOddPart).string(), "--config", flags, "--tokenizer", tokenizer.string(),
                        "--hf-config-path", write("config", dump_json(changed)), "--generation-config",
                        (odd / "generation \xc3\xbc").string(), "--port", "0", "--kv-cache-memory-bytes", "8m"},
                       surroundings);
  ASSERT_TRUE(server.serves()) << server.output();
  const Json card = http_get(server.port(), "/v1/models").json().at("data").at(0);
  EXPECT_EQ(card.at("id"), "\xe6\xa8\xa1 name");
  EXPECT_EQ(card.at("max_model_len"), 321);
  const HttpReply reply = http_post(server.port(), "/v1/chat/completions",
                                    R"({"messages":[{"role":"user","content":"ab"}],"return_token_ids":true})");
  EXPECT_EQ(reply.json()["prompt_token_ids"], (Json{'a', 'b', 0xe6, 0xa8, 0xa1})) << reply.body;
  EXPECT_LE(reply.json()["usage"]["completion_tokens"], 3);
}

TEST(Ops03, ErrorsNameOddPaths) {
  const TempFolder folder;
  const std::string missing = (folder.path() / kOddName / "none").string();
  ServerProcess server({missing, "--port", "0", "--log-level", "error"}, {.environment = {{"LC_ALL", "C"}}});
  EXPECT_EQ(server.wait(), 1);
  EXPECT_THAT(server.output(), HasSubstr(missing));
}

TEST(Ops03, StartsWhereTheWorkingDirectoryIsGone) {
  const TempFolder folder;
  const fs::path model = folder.path() / kOddName;
  make_tiny_model().write(model);
  for (const char* locale : {"C", "C.UTF-8"}) {
    const fs::path gone = folder.path() / "gone";
    fs::create_directories(gone);
    ServerProcess server({model.string(), "--skip-tokenizer-init", "--port", "0", "--kv-cache-memory-bytes", "8m",
                          "--served-model-name", "there"},
                         {.environment = {{"LC_ALL", locale}}, .folder = gone, .folder_is_gone = true});
    ASSERT_TRUE(server.serves()) << server.output();
    EXPECT_FALSE(fs::exists(gone));
    EXPECT_EQ(http_post(server.port(), "/v1/completions", R"({"prompt":[1,2],"max_tokens":2})").status, 200);
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.output();
  }
}

TEST(Ops03, LoadingTellsBytesAndRate) {
  const TempFolder folder;
  make_tiny_model().write(folder.path());
  ServerProcess server(
      {folder.path().string(), "--skip-tokenizer-init", "--port", "0", "--kv-cache-memory-bytes", "8m"});
  ASSERT_TRUE(server.serves()) << server.output();
  const std::string output = server.output();
  const std::size_t at = output.find(" of weights in ");
  ASSERT_NE(at, std::string::npos) << output;
  EXPECT_THAT(output.substr(at, output.find('\n', at) - at), HasSubstr("iB/s), "));
}

// The file that such a name would lead to is not opened, and no path of the server's comes back.
TEST(Api01, NamesThatArePathsOpenNothing) {
  const TempFolder folder;
  const fs::path model = folder.path() / "models" / "tiny", secret = folder.path() / "secrets";
  make_tiny_model().write(model);
  fs::create_directories(secret);
  std::ofstream(secret / "passwd") << "secret";
  ServerProcess server({model.string(), "--skip-tokenizer-init", "--port", "0", "--kv-cache-memory-bytes", "8m",
                        "--served-model-name", "tiny", "other"},
                       {.environment = {}, .folder = model});
  ASSERT_TRUE(server.serves()) << server.output();
  const int watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  ASSERT_GE(::inotify_add_watch(watch, secret.c_str(), IN_OPEN | IN_ACCESS), 0);
  ASSERT_GE(::inotify_add_watch(watch, model.c_str(), IN_OPEN | IN_ACCESS), 0);
  const std::string absolute = (secret / "passwd").string();
  const auto expect_unknown = [&](const HttpReply& reply) {
    EXPECT_EQ(reply.status, 404) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("tiny, other"));
    EXPECT_THAT(reply.body, Not(HasSubstr(model.string())));
  };
  std::vector<std::string> names = {"../../secrets/passwd", absolute, "tiny/../../../secrets/passwd",
                                    "config.json",          "./tiny", "tiny/",
                                    "model.safetensors"};
  for (const std::string& name : names) {
    for (const char* route : {"/v1/completions", "/v1/chat/completions"}) {
      const Json body = {{"model", name}, {"prompt", "a"}, {"messages", {{{"role", "user"}, {"content", "a"}}}}};
      expect_unknown(http_post(server.port(), route, dump_json(body)));
    }
    std::string encoded;
    for (const char c : name) encoded += c == '/' ? "%2f" : c == '.' ? "%2e" : std::string(1, c);
    expect_unknown(http_get(server.port(), "/v1/models/" + encoded));
  }
  char events[4096];
  EXPECT_EQ(::read(watch, events, sizeof events), -1) << "a file was opened";
  ::close(watch);
  for (const char* name : {"tiny", "other"}) {
    const Json body = {{"model", name}, {"prompt", {1, 2}}, {"max_tokens", 1}};
    const HttpReply reply = http_post(server.port(), "/v1/completions", dump_json(body));
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json()["model"], name);
  }
}

}  // namespace
}  // namespace octet::testing
