// Tokens per second of `octet serve`, as a client sees them: generation_bench [MODEL [FLAGS]]
// MODEL: the default model where none is given. Prompts are random token ids that share nothing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "benchmarks/default_model.h"
#include "tests/support/http_client.h"
#include "tests/support/server_process.h"

namespace octet::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 5;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Generation {
 public:
  explicit Generation(int port) : port_(port) {}

  // Prompt tokens per second of a prompt alone, its first token included.
  double prefill(int prompt) {
    const std::string body = request(prompt, 1, false);
    const auto start = Clock::now();
    require(http_post(port_, "/v1/completions", body).status == 200);
    return prompt / seconds_since(start);
  }

  // Tokens per second of all streams together, from their common start to the last one's end.
  double decode(int streams, int tokens) {
    std::vector<std::string> bodies;
    for (int i = 0; i < streams; ++i) bodies.push_back(request(16, tokens, true));
    const auto start = Clock::now();
    std::vector<std::jthread> clients;
    for (const std::string& body : bodies) clients.emplace_back([this, &body] { read_stream(body); });
    clients.clear();
    return streams * tokens / seconds_since(start);
  }

  bool failed() const { return failed_; }

 private:
  std::string request(int prompt, int tokens, bool stream) {
    std::string ids;
    for (int i = 0; i < prompt; ++i) ids += fmt::format("{}{}", i == 0 ? "" : ",", 10 + random_() % 200);
    return fmt::format(
        R"({{"model":"model","prompt":[{}],"max_tokens":{},"stream":{},"temperature":0,"ignore_eos":true}})", ids,
        tokens, stream);
  }

  void read_stream(const std::string& body) {
    HttpClient client(port_);
    client.post("/v1/completions", body);
    bool whole = client.read_head().status == 200;
    std::string last;
    while (const auto event = client.next_event()) last = *event;
    whole = whole && last == "[DONE]";
    require(whole);
  }

  void require(bool whole) {
    const std::lock_guard lock(mutex_);
    failed_ = failed_ || !whole;
  }

  const int port_;
  std::mt19937 random_{1};
  std::mutex mutex_;
  bool failed_ = false;
};

template <typename Measure>
void report(std::string_view what, const Measure& measure) {
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) rates.push_back(measure());
  std::ranges::sort(rates);
  fmt::print("{:<44}{:8.1f} tokens/s (median of {}; {:.1f} to {:.1f})\n", what, rates[kRounds / 2], kRounds,
             rates.front(), rates.back());
}

int run(int argc, char** argv) {
  std::vector<std::string> arguments = {argc > 1 ? argv[1] : default_model()};
  if (arguments.front().empty()) {
    fmt::print(stderr, "generation_bench: the default model could not be fetched\n");
    return 1;
  }
  arguments.insert(arguments.end(), {"--port", "0", "--served-model-name", "model"});
  for (int i = 2; i < argc; ++i) arguments.emplace_back(argv[i]);
  ServerProcess server(arguments);
  if (!server.serves()) {
    fmt::print(stderr, "generation_bench: the model is not served\n{}\n", server.output());
    return 1;
  }
  Generation generation(server.port());
  generation.decode(1, 16);
  report("decode, 1 stream of 256 tokens", [&] { return generation.decode(1, 256); });
  report("decode, 8 streams of 128 tokens", [&] { return generation.decode(8, 128); });
  report("prefill, prompts of 512 tokens", [&] { return generation.prefill(512); });
  if (generation.failed()) fmt::print(stderr, "generation_bench: a request failed\n{}\n", server.output());
  return generation.failed() ? 1 : 0;
}

}  // namespace
}  // namespace octet::testing

int main(int argc, char** argv) { return octet::testing::run(argc, argv); }
