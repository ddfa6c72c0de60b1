// Outputs of the engine to answers in OpenAI's wire format: whole, or as the events of a stream. Always valid JSON in
// valid UTF-8.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/engine/request.h"
#include "octet/server/answer_writer.h"
#include "octet/server/api_error.h"
#include "octet/server/openai_logprobs.h"
#include "octet/server/openai_request.h"

namespace octet::server {

// What an answer shows besides the engine's outputs.
struct AnswerFormat : AnswerFrame {
  ApiKind kind = ApiKind::kChat;
  bool include_usage = false, continuous_usage = false, return_token_ids = false;
  bool cached_tokens = false;                          // usage tells them
  std::vector<std::string> echo;                       // per prompt; empty: none
  std::vector<std::vector<text::TokenId>> prompt_ids;  // per prompt, where needs_prompt_ids()
  std::int32_t logprobs = -1, prompt_logprobs = -1;    // as in SamplingParams
  bool echo_logprobs = false;                          // those of the echoed prompt come first
  bool echo_alone = false;                             // nothing that was generated is shown or counted
  bool tokens_as_ids = false;
  bool metrics = false;                        // times of the only choice
  std::string role = "assistant";              // of a chat's answer
  std::string fingerprint = "null";            // JSON
  const text::Tokenizer* tokenizer = nullptr;  // outlives the answer

  bool needs_prompt_ids() const { return return_token_ids || echo_logprobs; }
};

// Gathers the outputs of all choices, and counts tokens for `usage`.
class AnswerBuilder final : public AnswerWriter {
 public:
  explicit AnswerBuilder(AnswerFormat format);
  const AnswerFrame& frame() const override { return format_; }
  bool complete() const override { return unfinished_ == 0; }
  void add(std::int32_t choice, engine::Output&& output) override;
  std::string whole() override;
  void begin(std::string& out) override;
  void event(std::string& out, std::int32_t choice, const engine::Output& output) override;
  void end(std::string& out) override;
  void failure(std::string& out, const ApiError& error) override;

 private:
  struct Choice {
    std::string text;
    std::vector<text::TokenId> ids;
    engine::FinishReason finish = engine::FinishReason::kNone;
    std::string stop_reason = "null";  // JSON
    std::int32_t completion_tokens = 0;
    std::int64_t queue_ns = -1, first_token_ns = -1, last_token_ns = -1;  // as in engine::Output
    bool begun = false;                                                   // a chunk was sent
    std::vector<engine::Logprob> logprobs, prompt_logprobs;
    CompletionLogprobs offsets;
  };
  struct PromptCount {
    std::int32_t tokens = 0, cached = 0;
  };

  void count(std::int32_t choice, const engine::Output& output);
  std::string usage() const;
  std::string metrics() const;
  std::string usage_of(std::int32_t choice) const;
  std::string usage_json(std::int64_t prompt, std::int64_t completion, std::int64_t cached) const;
  std::string_view prompt_echo(std::int32_t choice) const;
  TokenNames names() const { return {format_.tokenizer, format_.tokens_as_ids}; }
  void append_logprobs(std::string& out, std::int32_t index, Choice& choice,
                       std::vector<engine::Logprob> logprobs) const;
  void append_prompt(std::string& out, const Choice& choice) const;
  void open_chunk(std::string& out, std::int32_t choice);
  void chat_choice(std::string& out, std::int32_t index, Choice& choice) const;
  void completion_choice(std::string& out, std::int32_t index, Choice& choice) const;

  AnswerFormat format_;
  std::string chunk_head_;  // of every event, to the index of its choice
  std::vector<Choice> choices_;
  std::vector<PromptCount> prompts_;
  std::int32_t unfinished_;
};

}  // namespace octet::server
