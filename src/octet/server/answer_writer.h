// The seam between running a generation and the wire format of its answer: outputs of the engine go in, whole bodies or
// the events of a stream come out. One implementation per API.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "octet/engine/request.h"
#include "octet/server/api_error.h"
#include "octet/server/http_message.h"

namespace octet::server {

// What every answer has, whatever its format. Choice i belongs to prompt i / choices_per_prompt.
struct AnswerFrame {
  std::string id, model;
  std::int64_t created = 0;  // Unix time
  std::int32_t prompts = 1, choices_per_prompt = 1;
  bool stream = false;

  std::int32_t choices() const { return prompts * choices_per_prompt; }
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual const AnswerFrame& frame() const = 0;

  // All choices have ended.
  virtual bool complete() const = 0;

  // The answer as a whole: add() every output, then whole().
  virtual void add(std::int32_t choice, engine::Output&& output) = 0;
  virtual std::string whole() = 0;

  // The answer as events, appended to out: begin() right before the first event(), one event() per output, end().
  virtual void begin(std::string& out) = 0;
  virtual void event(std::string& out, std::int32_t choice, const engine::Output& output) = 0;
  virtual void end(std::string& out) = 0;
  // The event of a failure in a stream that has begun; nothing comes behind it.
  virtual void failure(std::string& out, const ApiError& error) = 0;
};

// "stop", "length", "abort" or "error"; "null" for none. Without quotes.
std::string_view finish_text(engine::FinishReason reason);
// text as a JSON string with its quotes; what is no UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

}  // namespace octet::server
