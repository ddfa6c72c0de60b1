#include "tests/support/request_mix.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/http_client.h"

namespace octet::testing {
namespace {

enum class Kind {
  kWhole,
  kChat,
  kStream,
  kChatStream,
  kStopped,
  kSeveral,
  kLogprobs,
  kPenalties,
  kSlow,
  kRefused,
  kMalformed,
  kTooLong,
  kNoHttp,
  kCloses,
  kResets,
  kLeavesWhole,
  kLeavesBody,
  kLeavesStream,
  kCount
};

bool is_chat(Kind kind) { return kind == Kind::kChat || kind == Kind::kChatStream; }

std::string words(std::mt19937_64& random) {
  static constexpr const char* kWords[] = {"the ",        "an ", "and ",   "\\n",
                                           "caf\\u00e9 ", "7",   "zebra ", "\\ud83d\\ude00 "};
  std::string text = "w";
  for (auto left = 1 + random() % 12; left > 0; --left) text += kWords[random() % std::size(kWords)];
  return text;
}

// What makes a kind what it is.
std::string fields_of(Kind kind) {
  switch (kind) {
    case Kind::kStream:
    case Kind::kSlow:
    case Kind::kCloses:
    case Kind::kResets:
    case Kind::kLeavesStream:
      return R"(,"stream":true,"ignore_eos":true)";
    case Kind::kChatStream:
      return R"(,"stream":true,"stream_options":{"include_usage":true})";
    case Kind::kStopped:
      return R"(,"stop":["the","e"," "])";
    case Kind::kSeveral:
      return R"(,"n":3,"temperature":1.1)";
    case Kind::kLogprobs:
      return R"(,"logprobs":3,"prompt_logprobs":1,"echo":true,"temperature":0)";
    case Kind::kPenalties:
      return R"(,"presence_penalty":1,"frequency_penalty":0.5,"repetition_penalty":1.2,"logit_bias":{"9":3},"min_tokens":1,"temperature":0)";
    case Kind::kRefused:
      return R"(,"temperature":"hot")";
    default:
      return R"(,"temperature":0.9,"top_p":0.95,"top_k":40)";
  }
}

std::string prompt_of(Kind kind, std::mt19937_64& random) {
  if (is_chat(kind)) return fmt::format(R"("messages":[{{"role":"user","content":"{}"}}])", words(random));
  if (kind != Kind::kTooLong) return fmt::format(R"("prompt":"{}")", words(random));
  constexpr int kLongerThanAnyContext = 20'000;
  std::string ids = "7";
  for (int i = 1; i < kLongerThanAnyContext; ++i) ids += ",7";
  return fmt::format(R"("prompt":[{}])", ids);
}

std::string body_of(const RequestMix& mix, Kind kind, std::mt19937_64& random) {
  std::string body = fmt::format(R"({{"model":"{}","max_tokens":{},"seed":{},)", mix.model,
                                 1 + random() % static_cast<std::uint64_t>(mix.max_tokens), random() % 1000);
  body += prompt_of(kind, random) + fields_of(kind);
  return kind == Kind::kMalformed ? body : body + "}";
}

class Client {
 public:
  Client(const RequestMix& mix, int number)
      : mix_(mix), random_(mix.seed * 1'000'003 + static_cast<unsigned>(number)) {}

  // What went wrong; empty: as intended. Counts into `outcome`.
  std::string ask(RequestMixOutcome& outcome) {
    const auto kind = static_cast<Kind>(random_() % static_cast<unsigned>(Kind::kCount));
    const std::string body = body_of(mix_, kind, random_);
    for (;;) {
      turned_away_ = false;
      std::string wrong = ask_once(kind, body, outcome);
      if (!turned_away_) return wrong;
      ++outcome.turned_away;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  std::string ask_once(Kind kind, const std::string& body, RequestMixOutcome& outcome) {
    if (connection_ == nullptr) connection_ = std::make_unique<HttpClient>(mix_.port);
    if (kind == Kind::kNoHttp) return no_http(outcome);
    const char* route = is_chat(kind) ? "/v1/chat/completions" : "/v1/completions";
    if (kind == Kind::kLeavesBody) return leave_body(route, body, outcome);
    connection_->post(route, body);
    switch (kind) {
      case Kind::kStream:
      case Kind::kChatStream:
      case Kind::kSlow:
        return stream(kind == Kind::kSlow, outcome);
      case Kind::kCloses:
      case Kind::kResets:
        return leave_stream(kind == Kind::kResets, outcome);
      case Kind::kLeavesWhole:
      case Kind::kLeavesStream:
        leave(random_() % 2 == 0, outcome);
        return {};
      default:
        return whole(kind == Kind::kRefused || kind == Kind::kMalformed || kind == Kind::kTooLong, outcome);
    }
  }

  // Sees to an answer that is the server's fault; false: it is not, or may not be.
  bool fault(int status, RequestMixOutcome& outcome) {
    if (!mix_.faults || (status != 429 && status != 500)) return false;
    connection_.reset();
    turned_away_ = status == 429;
    outcome.failed += status == 500;
    return true;
  }

  std::string whole(bool refused, RequestMixOutcome& outcome) {
    const HttpReply reply = connection_->read();
    const bool good = reply.complete && reply.status == (refused ? 400 : 200) && reply.json().is_object();
    if (!good && fault(reply.status, outcome)) return {};
    ++(refused ? outcome.refused : outcome.answered);
    if (good) return {};
    connection_.reset();
    return fmt::format("status {}: {}", reply.status, reply.body);
  }

  std::string stream(bool slow, RequestMixOutcome& outcome) {
    const HttpReply head = connection_->read_head();
    if (head.status != 200 && fault(head.status, outcome)) return {};
    std::string last;
    while (const auto event = connection_->next_event()) {
      last = *event;
      if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (head.status == 200 && last.starts_with(R"({"error")") && fault(500, outcome)) return {};
    ++outcome.answered;
    if (head.status == 200 && last == "[DONE]") return {};
    connection_.reset();
    return fmt::format("a stream with status {} ended with {}", head.status, last);
  }

  void leave(bool resets, RequestMixOutcome& outcome) {
    if (resets) connection_->reset();
    connection_.reset();
    ++outcome.abandoned;
  }

  std::string leave_stream(bool resets, RequestMixOutcome& outcome) {
    const HttpReply head = connection_->read_head();
    if (head.status != 200 && fault(head.status, outcome)) return {};
    if (head.status == 200) connection_->next_event();
    leave(resets, outcome);
    return head.status == 200 ? "" : fmt::format("status {}", head.status);
  }

  std::string leave_body(const char* route, const std::string& body, RequestMixOutcome& outcome) {
    connection_->send(fmt::format("POST {} HTTP/1.1\r\nContent-Length: {}\r\n\r\n", route, body.size()));
    connection_->send(body.substr(0, random_() % body.size()));
    leave(random_() % 2 == 0, outcome);
    return {};
  }

  std::string no_http(RequestMixOutcome& outcome) {
    ++outcome.refused;
    connection_->send("\x16\x03\x01 this is no HTTP\r\n\r\n");
    const int status = connection_->read().status;
    connection_.reset();
    return status == 400 ? "" : fmt::format("status {} for what is no HTTP", status);
  }

  const RequestMix& mix_;
  std::mt19937_64 random_;
  std::unique_ptr<HttpClient> connection_;
  bool turned_away_ = false;  // by a full queue: the same is asked again
};

void add(RequestMixOutcome& sum, const RequestMixOutcome& part) {
  sum.answered += part.answered;
  sum.refused += part.refused;
  sum.abandoned += part.abandoned;
  sum.failed += part.failed;
  sum.turned_away += part.turned_away;
  sum.wrong += part.wrong;
  if (sum.first_wrong.empty()) sum.first_wrong = part.first_wrong;
}

}  // namespace

int soak_requests(int otherwise) {
  const char* text = std::getenv("OCTET_SOAK_REQUESTS");
  const int requests = text == nullptr ? otherwise : std::atoi(text);
  return requests > 0 ? requests : otherwise;
}

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
