#include "octet/bench/request_body.h"

namespace octet::bench {

std::string History::prompt() const {
  std::string text = conversation_->system;
  for (std::size_t i = 0; i <= turn(); ++i) {
    text += conversation_->turns[i].text;
    if (i < answers_.size()) text += answers_[i];
  }
  return text;
}

Json History::messages() const {
  Json list = Json::array();
  if (!conversation_->system.empty()) list.push_back({{"role", "system"}, {"content", conversation_->system}});
  for (std::size_t i = 0; i <= turn(); ++i) {
    list.push_back({{"role", "user"}, {"content", conversation_->turns[i].text}});
    if (i < answers_.size()) list.push_back({{"role", "assistant"}, {"content", answers_[i]}});
  }
  return list;
}

std::string request_body(const History& history, const BodyOptions& options) {
  const bool chat = options.api == Api::kChat;
  Json body{{"model", options.model}};
  if (chat) {
    body["messages"] = history.messages();
    body["max_completion_tokens"] = history.now().output_tokens;
  } else {
    body["prompt"] = history.prompt();
    body["max_tokens"] = history.now().output_tokens;
  }
  body["stream"] = options.stream;
  if (options.stream) body["stream_options"] = {{"include_usage", true}};
  if (options.ignore_eos) body["ignore_eos"] = true;
  if (options.logprobs && chat) {
    body["logprobs"] = true;
    body["top_logprobs"] = *options.logprobs;
  } else if (options.logprobs) {
    body["logprobs"] = *options.logprobs;
  }
  body.update(options.sampling);
  body.update(options.extra);
  return dump_json(body);
}

}  // namespace octet::bench
