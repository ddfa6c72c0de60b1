// LOAD-03, LOAD-04, LOAD-05 and tokenizers: `octet serve` on every malformed model of the suite.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>

#include "tests/support/http_client.h"
#include "tests/support/malformed.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_folder.h"

namespace octet::testing {
namespace {

class MalformedServe : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    make_malformed(folder_->path(), true);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  // Warnings may say more about a model that is served; of a refusal there is the refusal alone.
  static void check(const std::string& format, const std::string& control, int expected) {
    const MalformedChecker checker(
        {.command = {OCTET_PROGRAM, "serve", "--port", "0", "--log-level", "error", "--threads", "1",
                     "--kv-cache-memory-bytes", "1m", "--max-num-seqs", "4", "--max-num-batched-tokens", "16"},
         .ready = "requests of the full context"},
        folder_->path(), control);
    EXPECT_EQ(checker.check_all(format), expected);
  }

  static inline std::unique_ptr<TempFolder> folder_;
};

TEST_F(MalformedServe, Safetensors) { check("safetensors", "control-safetensors", 68); }
TEST_F(MalformedServe, Index) { check("index", "control-sharded", 19); }
TEST_F(MalformedServe, Config) { check("config", "control-safetensors", 44); }
TEST_F(MalformedServe, Tokenizer) { check("tokenizer", "control-safetensors", 30); }
TEST_F(MalformedServe, Gguf) { check("gguf", "control-gguf.gguf", 81); }

// Tokenizers that load answer whatever is asked, or refuse that one request.
TEST_F(MalformedServe, TokenizersThatLoadTakeEveryPrompt) {
  const std::string prompts[] = {std::string(5000, 'a') + "!", "ABCxxx", "the <bos>\\n caf\\u00e9 \\ud83d\\ude00", "x"};
  int served = 0;
  for (const MalformedEntry& entry : malformed_entries()) {
    if (entry.format != "tokenizer" || entry.outcome == "error") continue;
    SCOPED_TRACE(entry.name + ": " + entry.wrong);
    ServerProcess server({(folder_->path() / entry.path).string(), "--port", "0", "--served-model-name", "M",
                          "--kv-cache-memory-bytes", "1m", "--threads", "1"});
    if (!server.serves()) continue;
    ++served;
    for (const std::string& prompt : prompts) {
      const HttpReply reply =
          http_post(server.port(), "/v1/completions",
                    R"({"model":"M","max_tokens":8,"temperature":0,"ignore_eos":true,"prompt":")" + prompt + "\"}");
      EXPECT_TRUE(reply.status == 200 || reply.status == 400) << reply.status << " " << reply.body;
      EXPECT_TRUE(reply.json().is_object()) << reply.body;
    }
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.output();
  }
  EXPECT_GT(served, 0);
}

}  // namespace
}  // namespace octet::testing
