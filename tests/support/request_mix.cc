#include "tests/support/request_mix.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/http_client.h"

namespace octet::testing {
namespace {

enum class Kind { kWhole, kChat, kStream, kChatStream, kStopped, kRefused, kCloses, kResets, kLeavesWhole, kCount };

std::string words(std::mt19937_64& random) {
  static constexpr const char* kWords[] = {"the ",        "an ", "and ",   "\\n",
                                           "caf\\u00e9 ", "7",   "zebra ", "\\ud83d\\ude00 "};
  std::string text = "w";
  for (auto left = 1 + random() % 12; left > 0; --left) text += kWords[random() % std::size(kWords)];
  return text;
}

std::string body_of(const RequestMix& mix, Kind kind, std::mt19937_64& random) {
  const std::string text = words(random);
  const bool chat = kind == Kind::kChat || kind == Kind::kChatStream;
  std::string body = fmt::format(R"({{"model":"{}","max_tokens":{},"seed":{})", mix.model,
                                 1 + random() % static_cast<std::uint64_t>(mix.max_tokens), random() % 1000);
  body += chat ? fmt::format(R"(,"messages":[{{"role":"user","content":"{}"}}])", text)
               : fmt::format(R"(,"prompt":"{}")", text);
  body += random() % 2 == 0 ? R"(,"temperature":0)" : R"(,"temperature":0.9,"top_p":0.95,"top_k":40)";
  switch (kind) {
    case Kind::kStream:
    case Kind::kCloses:
    case Kind::kResets:
      body += R"(,"stream":true,"ignore_eos":true)";
      break;
    case Kind::kChatStream:
      body += R"(,"stream":true,"stream_options":{"include_usage":true})";
      break;
    case Kind::kStopped:
      body += R"(,"stop":["the","e"," "])";
      break;
    case Kind::kRefused:
      body += R"(,"temperature":"hot")";
      break;
    default:
      break;
  }
  return body + "}";
}

class Client {
 public:
  Client(const RequestMix& mix, int number)
      : mix_(mix), random_(mix.seed * 1'000'003 + static_cast<unsigned>(number)) {}

  // What went wrong; empty: as intended. Counts into `outcome`.
  std::string ask(RequestMixOutcome& outcome) {
    const auto kind = static_cast<Kind>(random_() % static_cast<unsigned>(Kind::kCount));
    const bool chat = kind == Kind::kChat || kind == Kind::kChatStream;
    if (connection_ == nullptr) connection_ = std::make_unique<HttpClient>(mix_.port);
    connection_->post(chat ? "/v1/chat/completions" : "/v1/completions", body_of(mix_, kind, random_));
    switch (kind) {
      case Kind::kStream:
      case Kind::kChatStream:
        return stream(outcome);
      case Kind::kCloses:
      case Kind::kResets:
        return leave_stream(kind == Kind::kResets, outcome);
      case Kind::kLeavesWhole:
        connection_.reset();
        ++outcome.abandoned;
        return {};
      default:
        return whole(kind == Kind::kRefused, outcome);
    }
  }

 private:
  std::string whole(bool refused, RequestMixOutcome& outcome) {
    const HttpReply reply = connection_->read();
    ++(refused ? outcome.refused : outcome.answered);
    if (reply.complete && reply.status == (refused ? 400 : 200) && reply.json().is_object()) return {};
    connection_.reset();
    return fmt::format("status {}: {}", reply.status, reply.body);
  }

  std::string stream(RequestMixOutcome& outcome) {
    ++outcome.answered;
    const HttpReply head = connection_->read_head();
    std::string last;
    while (const auto event = connection_->next_event()) last = *event;
    if (head.status == 200 && last == "[DONE]") return {};
    connection_.reset();
    return fmt::format("a stream with status {} ended with {}", head.status, last);
  }

  std::string leave_stream(bool resets, RequestMixOutcome& outcome) {
    ++outcome.abandoned;
    const HttpReply head = connection_->read_head();
    if (head.status == 200) connection_->next_event();
    if (resets) connection_->reset();
    connection_.reset();
    return head.status == 200 ? "" : fmt::format("status {}", head.status);
  }

  const RequestMix& mix_;
  std::mt19937_64 random_;
  std::unique_ptr<HttpClient> connection_;
};

void add(RequestMixOutcome& sum, const RequestMixOutcome& part) {
  sum.answered += part.answered;
  sum.refused += part.refused;
  sum.abandoned += part.abandoned;
  sum.wrong += part.wrong;
  if (sum.first_wrong.empty()) sum.first_wrong = part.first_wrong;
}

}  // namespace

RequestMixOutcome run_request_mix(const RequestMix& mix) {
  RequestMixOutcome sum;
  std::mutex mutex;
  std::atomic<int> left = mix.requests;
  std::vector<std::jthread> clients;
  for (int number = 0; number < mix.clients; ++number) {
    clients.emplace_back([&, number] {
      Client client(mix, number);
      RequestMixOutcome mine;
      while (left.fetch_sub(1) > 0) {
        const std::string wrong = client.ask(mine);
        if (wrong.empty()) continue;
        ++mine.wrong;
        if (mine.first_wrong.empty()) mine.first_wrong = wrong;
      }
      const std::lock_guard lock(mutex);
      add(sum, mine);
    });
  }
  clients.clear();
  return sum;
}

}  // namespace octet::testing
