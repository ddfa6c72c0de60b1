// Resident memory of the whole program: within its bounds, and flat whatever clients do.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "tests/support/request_mix.h"
#include "tests/support/server_process.h"

namespace octet::testing {
namespace {

// Sanitizers keep what was freed.
constexpr bool kRelease = std::string_view(OCTET_BUILD_TYPE) == "Release";
constexpr double kMib = 1 << 20;

// Connections of clients that have left are closed a moment later.
int settled_descriptors(const ServerProcess& server) {
  int last = -1;
  for (int same = 0; same < 20;) {
    const int now = server.descriptors();
    same = now == last ? same + 1 : 0;
    last = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return last;
}

TEST(Memory, FlatOverRequestsOfEveryKind) {
  const std::string model = std::string(OCTET_TEST_DATA) + "/gguf/llama-bpe-rope3-tied-bf16.gguf";
  // Six contexts of KV for sixteen sequences: blocks are evicted and requests preempted all the time.
  ServerProcess server({model, "--port", "0", "--served-model-name", "tiny", "--kv-cache-memory-bytes", "96k",
                        "--max-num-seqs", "16", "--threads", "1"});
  ASSERT_TRUE(server.serves()) << server.output();
  RequestMix mix{.port = server.port(), .model = "tiny", .requests = 300};
  const auto run = [&] {
    const RequestMixOutcome outcome = run_request_mix(mix);
    EXPECT_EQ(outcome.wrong, 0) << outcome.first_wrong << "\n" << server.output();
    EXPECT_EQ(outcome.all(), mix.requests);
    EXPECT_TRUE(comes_to_rest(mix.port));
    EXPECT_EQ(read_metrics(mix.port)["vllm:kv_cache_usage_perc"], 0.0);
    return server.resident_bytes();
  };
  const std::int64_t warm = run();
  const int threads = server.threads(), descriptors = settled_descriptors(server);
  mix.seed = 2;
  mix.requests = 700;
  const std::int64_t after = run();
  EXPECT_GT(warm, 0);
  EXPECT_EQ(server.threads(), threads);
  EXPECT_EQ(settled_descriptors(server), descriptors);
  if (kRelease) EXPECT_LE(static_cast<double>(after - warm) / kMib, 8.0) << "MiB more after 700 requests";
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0) << server.output();
}

}  // namespace
}  // namespace octet::testing
