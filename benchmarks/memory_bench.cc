// Resident memory of `octet serve`, against its bounds: memory_bench [MODEL [REQUESTS]]
//   1. MODEL (none: the default model, fetched where it is missing): at most 1.1 times the file plus the KV pool plus
//      96 MiB, after loading and after requests that have written to every block of the pool;
//   2. a tiny model, over REQUESTS (10,000) of every kind: flat.
// Ends with 1 where a bound does not hold.
#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>

#include "benchmarks/default_model.h"
#include "tests/support/http_client.h"
#include "tests/support/request_mix.h"
#include "tests/support/server_process.h"

namespace octet::testing {
namespace {

constexpr double kMib = 1 << 20;
constexpr int kPoolMib = 64;
constexpr double kSpareMib = 96;
constexpr int kRequests = 10'000;
constexpr double kFlatMib = 4;

bool report(std::string_view what, double mib, double bound) {
  fmt::print("{:<58}{:8.1f} MiB, at most {:8.1f}{}\n", what, mib, bound, mib <= bound ? "" : "  EXCEEDED");
  return mib <= bound;
}

double resident_mib(const ServerProcess& server) { return static_cast<double>(server.resident_bytes()) / kMib; }

// What ServerProcess says on its start line as "= N tokens".
int kv_tokens(const ServerProcess& server) {
  const std::string output = server.output();
  const std::size_t at = output.find(" MB = ");
  return at == std::string::npos ? 0 : std::atoi(output.c_str() + at + 6);
}

// Prompts that share nothing, until they have taken every block once.
bool fill_pool(const ServerProcess& server, int tokens) {
  constexpr int kPrompt = 256;
  std::mt19937 random(1);
  for (int sent = 0; sent < tokens + kPrompt; sent += kPrompt) {
    std::string ids;
    for (int i = 0; i < kPrompt; ++i) ids += fmt::format("{}{}", i == 0 ? "" : ",", 10 + random() % 200);
    const std::string body = fmt::format(R"({{"model":"model","prompt":[{}],"max_tokens":2}})", ids);
    if (http_post(server.port(), "/v1/completions", body).status != 200) return false;
  }
  return true;
}

int fail(std::string_view what, const std::string& output) {
  fmt::print(stderr, "memory_bench: {}\n{}\n", what, output);
  return 1;
}

int measure_model(const std::string& model) {
  ServerProcess server(
      {model, "--port", "0", "--served-model-name", "model", "--kv-cache-memory-bytes", fmt::format("{}m", kPoolMib)});
  if (!server.serves()) return fail("the model is not served", server.output());
  const double file = static_cast<double>(std::filesystem::file_size(model)) / kMib;
  const double bound = 1.1 * file + kPoolMib + kSpareMib;
  fmt::print("{}: {:.1f} MiB, KV pool {} MiB\n", model, file, kPoolMib);
  bool held = report("after loading", resident_mib(server), bound);
  if (!fill_pool(server, kv_tokens(server))) return fail("a request failed", server.output());
  held &= report("after writing to every block of the pool", resident_mib(server), bound);
  RequestMix mix{.port = server.port(), .model = "model", .requests = 200};
  const RequestMixOutcome outcome = run_request_mix(mix);
  if (outcome.wrong > 0) return fail(outcome.first_wrong, server.output());
  held &= report(fmt::format("after {} requests of every kind", mix.requests), resident_mib(server), bound);
  return held ? 0 : 1;
}

int measure_growth(int requests) {
  ServerProcess server({OCTET_TEST_DATA "/gguf/llama-bpe-rope3-tied-bf16.gguf", "--port", "0", "--served-model-name",
                        "tiny", "--kv-cache-memory-bytes", "96k", "--max-num-seqs", "16"});
  if (!server.serves()) return fail("the model is not served", server.output());
  RequestMix mix{.port = server.port(), .model = "tiny", .requests = 1000};
  RequestMixOutcome outcome = run_request_mix(mix);
  const double warm = resident_mib(server);
  const int threads = server.threads(), descriptors = server.descriptors();
  fmt::print("tiny model: {:.1f} MiB after {} requests\n", warm, mix.requests);
  mix.seed = 2;
  mix.requests = requests;
  if (outcome.wrong == 0) outcome = run_request_mix(mix);
  if (outcome.wrong > 0) return fail(outcome.first_wrong, server.output());
  fmt::print("{} more: {} answered, {} refused, {} abandoned\n", mix.requests, outcome.answered, outcome.refused,
             outcome.abandoned);
  bool held = report(fmt::format("growth over {} requests", mix.requests), resident_mib(server) - warm, kFlatMib);
  if (!comes_to_rest(mix.port)) return fail("requests are left running or waiting", server.output());
  auto metrics = read_metrics(mix.port);
  fmt::print("threads {}, were {}; descriptors {}, were {}; share of the KV blocks in use {}\n", server.threads(),
             threads, server.descriptors(), descriptors, metrics["vllm:kv_cache_usage_perc"]);
  held &= server.threads() == threads && metrics["vllm:kv_cache_usage_perc"] == 0;
  // Connections that are being closed may come on top.
  held &= server.descriptors() <= descriptors + mix.clients;
  server.signal(SIGTERM);
  if (server.wait() != 0) return fail("the server did not end well", server.output());
  return held ? 0 : 1;
}

int run(int argc, char** argv) {
  const std::string model = argc > 1 ? argv[1] : default_model();
  if (model.empty()) return fail("the default model could not be fetched", "");
  const int requests = argc > 2 ? std::atoi(argv[2]) : kRequests;
  if (requests < 1) return fail("REQUESTS is no number", argv[2]);
  const int bounded = measure_model(model), flat = measure_growth(requests);
  return bounded != 0 ? bounded : flat;
}

}  // namespace
}  // namespace octet::testing

int main(int argc, char** argv) { return octet::testing::run(argc, argv); }
