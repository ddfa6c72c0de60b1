// The JSON that a turn of a conversation is sent as.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/json.h"
#include "octet/bench/answer_reader.h"
#include "octet/bench/workload.h"

namespace octet::bench {

struct BodyOptions {
  Api api = Api::kCompletions;
  std::string model;
  bool stream = true;
  bool ignore_eos = false;
  std::optional<std::int64_t> logprobs;
  Json sampling = Json::object();  // temperature and so on, sent as they are
  Json extra = Json::object();     // overrides all of it
};

// What was said before in a conversation: its system text, then questions and answers in turns.
class History {
 public:
  explicit History(const Conversation& conversation) : conversation_(&conversation) {}

  void answered(std::string answer) { answers_.push_back(std::move(answer)); }
  std::size_t turn() const { return answers_.size(); }
  const Turn& now() const { return conversation_->turns[turn()]; }
  bool has_turn() const { return turn() < conversation_->turns.size(); }

  std::string prompt() const;  // all of it as one text
  Json messages() const;       // as chat messages

 private:
  const Conversation* conversation_;
  std::vector<std::string> answers_;
};

// Of the turn that is next.
std::string request_body(const History& history, const BodyOptions& options);

}  // namespace octet::bench
