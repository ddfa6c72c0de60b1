// What `octet bench serve` itself costs: many streams from a stub that sends each of them a token now and then.
//   client_bench [streams] [tokens per second in all] [seconds]      default 256, 20000 and 10
// Ends with an error where the client took half a core or more, or was late.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "octet/base/check.h"
#include "octet/bench/curl_transport.h"
#include "octet/bench/load_run.h"
#include "octet/bench/summary.h"

namespace {

using namespace octet;

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
constexpr std::string_view kToken =
    "data: {\"id\":\"cmpl-0123456789abcdef0123456789abcdef\",\"object\":\"text_completion\",\"created\":1767225600,"
    "\"model\":\"model\",\"choices\":[{\"index\":0,\"text\":\" token\",\"logprobs\":null,\"finish_reason\":null,"
    "\"stop_reason\":null}],\"usage\":null}\n\n";

std::string end_of(int tokens) {
  return fmt::format(
      "data: {{\"choices\":[{{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}}]}}\n\n"
      "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":{}}}}}\n\ndata: [DONE]\n\n",
      tokens);
}

void send_all(int peer, std::string_view bytes) {
  OCTET_CHECK(::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

// Takes so many connections, then sends all of them a token in every period, and the end.
class Stub {
 public:
  Stub(int streams, int tokens, std::chrono::nanoseconds period)
      : streams_(streams), tokens_(tokens), period_(period), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    OCTET_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    OCTET_CHECK(::listen(listener_, streams) == 0);
    OCTET_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Stub() {
    thread_.join();
    ::close(listener_);
  }
  int port() const { return port_; }

 private:
  void serve() {
    std::vector<int> peers;
    char request[65536];
    while (static_cast<int>(peers.size()) < streams_) {
      peers.push_back(::accept(listener_, nullptr, nullptr));
      const int on = 1;
      ::setsockopt(peers.back(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      OCTET_CHECK(::recv(peers.back(), request, sizeof request, 0) > 0);
      send_all(peers.back(), kHead);
    }
    // Streams are out of step, as those of a busy server are: one after another over the period.
    auto at = std::chrono::steady_clock::now();
    for (int token = 0; token < tokens_; ++token) {
      for (const int peer : peers) {
        std::this_thread::sleep_until(at += period_ / streams_);
        send_all(peer, kToken);
      }
    }
    for (const int peer : peers) {
      send_all(peer, end_of(tokens_));
      ::close(peer);
    }
  }

  const int streams_, tokens_;
  const std::chrono::nanoseconds period_;
  int listener_, port_ = 0;
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  const int streams = argc > 1 ? std::atoi(argv[1]) : 256;
  const double rate = argc > 2 ? std::atof(argv[2]) : 20'000;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 10;
  if (streams < 1 || rate <= 0 || seconds <= 0) {
    fmt::print(stderr, "client_bench [streams] [tokens per second in all] [seconds]\n");
    return 2;
  }
  const int tokens = std::max(2, static_cast<int>(rate * seconds / streams));
  bench::Workload workload{.name = "client"};
  for (int i = 0; i < streams; ++i) {
    bench::Conversation one;
    one.turns.push_back({.text = "x", .output_tokens = tokens, .input_tokens = 1});
    workload.conversations.push_back(std::move(one));
  }
  Stub stub(streams, tokens, std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * streams / rate)));
  const auto transport = bench::open_http({.url = fmt::format("http://127.0.0.1:{}/v1/completions", stub.port())});
  OCTET_CHECK(transport);
  const bench::Run run = bench::run_load(workload, {.body = {.model = "model"}}, **transport);
  const bench::Summary summary = bench::summarize(run);
  fmt::print("{} streams, {:.0f} tokens/s received: {:.0f} % of a core, a round of events {:.2f} ms at p99\n",
             summary.completed, summary.output_throughput, 100 * run.client.cpu_share,
             static_cast<double>(run.client.loop_lag_p99_ns) / 1e6);
  fmt::print("TPOT p50 {:.2f}, p99 {:.2f} ms; sent every {:.2f} ms\n", summary.tpot.percentile(50),
             summary.tpot.percentile(99), 1e3 * streams / rate);
  return summary.completed == streams && run.client.cpu_share < 0.5 && !summary.client_bound ? 0 : 1;
}
