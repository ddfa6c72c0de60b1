// Chat templates: Jinja as transformers renders it (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop
// controls, generation blocks).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/render_limits.h"
#include "octet/text/tokenizer.h"

namespace octet::text {

struct RenderInput {
  Json messages = Json::array();
  Json tools = nullptr;
  Json documents = nullptr;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool keep_nulls = false;          // members of messages that are null reach the template; else they are left out
  Json variables = Json::object();  // every other name the template sees, of the operator: bos_token, eos_token
  Json client_variables =
      Json::object();    // chat_template_kwargs of a request; none of the names above can be replaced by them
  std::int64_t now = 0;  // what strftime_now takes as the time: seconds since 1970, local where local time is wanted
};

// A moment (seconds since 1970) as RenderInput::now wants it for the time zone of this process.
std::int64_t local_time(std::int64_t moment);

struct Rendered {
  std::string text;
  std::vector<TextSpan> spans;  // cover text: which bytes came from the template, which from the input's data
};

// Immutable after parsing; render is thread-safe.
class ChatTemplate {
 public:
  // Errors name the template line and the reason.
  static Result<ChatTemplate> parse(std::string source);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // The prompt. Errors: raise_exception (its message), a type error, a limit; with the line.
  Result<Rendered> render(const RenderInput& input, const RenderLimits& limits = {}) const;

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace octet::text
