// Thousands of requests of every kind on a tiny real model whose engine fails now and then, with a short queue and a
// pool smaller than one context: nothing is left behind, and nobody's answer changes. OCTET_SOAK_REQUESTS says how
// many.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/support/request_mix.h"
#include "tests/support/test_server.h"
#include "tests/support/tiny_server.h"

namespace octet::server {
namespace {

using octet::testing::eventually;
using octet::testing::RequestMix;
using octet::testing::RequestMixOutcome;
using octet::testing::StepFaults;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;

// Sanitizers keep what was freed.
constexpr bool kRelease = std::string_view(OCTET_BUILD_TYPE) == "Release";
constexpr double kMib = 1 << 20;

struct Held {
  std::size_t descriptors = 0, threads = 0;
  double resident_mib = 0;
};

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

Held held() {
  Held now{.descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) now.resident_mib = static_cast<double>(std::atoll(line.c_str() + 6)) * 1024 / kMib;
  }
  return now;
}

std::uint64_t finished(TestServer& server, engine::FinishReason reason) {
  return server.engine().stats().finished[static_cast<std::size_t>(reason) - 1];
}

TEST(Soak, MixedRequestsWithFaultsLeaveNothingBehind) {
  TestServerOptions options = octet::testing::tiny_server({.slots = 4, .max_rows = 32, .context = 256, .blocks = 14});
  options.max_waiting = 6;
  options.limits.backlog_bytes = 64 << 10;
  const std::shared_ptr<StepFaults> faults = options.faults;
  TestServer server(std::move(options));
  const auto probe = [&] {
    const auto reply =
        server.post("/v1/completions", R"({"prompt":"the same as ever","temperature":0,"max_tokens":40,"logprobs":1})");
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json()["choices"].dump();
  };
  const auto soak = [&](int requests, std::uint64_t seed) {
    const RequestMix mix{
        .port = server.port(), .model = "M", .requests = requests, .clients = 12, .faults = true, .seed = seed};
    faults->fail_every(101);
    const RequestMixOutcome outcome = run_request_mix(mix);
    faults->fail_every(0);
    EXPECT_EQ(outcome.wrong, 0) << outcome.first_wrong;
    EXPECT_EQ(outcome.all(), requests);
    EXPECT_GT(outcome.answered, requests / 4);
    EXPECT_GT(outcome.refused, requests / 8);
    EXPECT_GT(outcome.abandoned, requests / 8);
    EXPECT_TRUE(server.comes_to_rest());  // nothing runs, waits or owns a block
    EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; }));
    EXPECT_EQ(server.get("/health").status, 200);
  };
  const std::string answer = probe();
  soak(1000, 1);
  EXPECT_EQ(probe(), answer);
  EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; }));
  const Held before = held();
  soak(octet::testing::soak_requests(3000), 2);
  EXPECT_EQ(probe(), answer);
  EXPECT_TRUE(eventually([&] { return server.http().connections() == 0; }));
  const Held after = held();
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
  if (kRelease) EXPECT_LE(after.resident_mib - before.resident_mib, 8.0) << "MiB more";
  // Every fault did come.
  EXPECT_GT(faults->failed(), 0U);
  EXPECT_GT(finished(server, engine::FinishReason::kError), 0U);
  EXPECT_GT(finished(server, engine::FinishReason::kAbort), 0U);
  EXPECT_GT(server.service().rejected_full_queue(), 0U);
  EXPECT_GT(server.engine().stats().preemptions, 0U);
}

}  // namespace
}  // namespace octet::server
