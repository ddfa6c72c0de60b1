// Outputs of the engine to a message of Anthropic's Messages API: one block of text.
#pragma once
#include <cstdint>
#include <string>

#include "octet/base/json.h"
#include "octet/server/answer_writer.h"

namespace octet::server {

class MessageWriter final : public AnswerWriter {
 public:
  // The frame has one choice. tell_cached: usage tells the tokens that came from the prefix cache apart.
  MessageWriter(AnswerFrame frame, bool tell_cached);

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
  void open_message(std::string& out);
  Json message() const;
  Json usage(std::int32_t output_tokens) const;
  Json stop_sequence() const;

  AnswerFrame frame_;
  bool tell_cached_;
  std::string text_;     // of a whole answer
  engine::Output last_;  // counts and end; no text
  bool opened_ = false;  // message_start was sent
};

}  // namespace octet::server
