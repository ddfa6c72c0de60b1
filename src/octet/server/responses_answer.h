// Outputs of the engine to a response of OpenAI's Responses API: one message with one part of text.
#pragma once
#include <cstdint>
#include <string>

#include "octet/base/json.h"
#include "octet/server/answer_writer.h"

namespace octet::server {

// What a response tells of its request.
struct ResponseEcho {
  Json instructions = nullptr, metadata = nullptr, reasoning = nullptr, text = nullptr, user = nullptr;
  Json tool_choice = "auto";
  std::string truncation = "disabled";
  bool parallel_tool_calls = true;
  double temperature = 1, top_p = 1, presence_penalty = 0, frequency_penalty = 0;
  std::int32_t max_output_tokens = 0;
};

class ResponseWriter final : public AnswerWriter {
 public:
  // The frame has one choice.
  ResponseWriter(AnswerFrame frame, std::string message_id, ResponseEcho echo);

  const AnswerFrame& frame() const override { return frame_; }
  bool complete() const override { return last_.finish != engine::FinishReason::kNone; }
  void add(std::int32_t choice, engine::Output&& output) override;
  std::string whole() override;
  void begin(std::string& out) override;
  void event(std::string& out, std::int32_t choice, const engine::Output& output) override;
  void end(std::string& out) override;
  void failure(std::string& out, const ApiError& error) override;

 private:
  void take(const engine::Output& output);
  bool cut() const { return last_.finish == engine::FinishReason::kLength; }
  // begun: before anything was generated.
  Json response(bool begun) const;
  Json message(bool begun) const;
  Json part(bool begun) const;
  Json usage() const;
  // Opens an event's data up to its sequence number; members and "}\n\n" follow.
  void open(std::string& out, std::string_view type);
  void append(std::string& out, std::string_view type, const Json& members);
  Json place() const;  // the members that say to which part of the answer an event belongs

  AnswerFrame frame_;
  std::string message_id_;
  ResponseEcho echo_;
  std::string text_;
  engine::Output last_;        // counts and end; no text
  std::int64_t sequence_ = 0;  // number of the next event
  std::string delta_members_;  // of every delta, from its item to "delta":
};

}  // namespace octet::server
