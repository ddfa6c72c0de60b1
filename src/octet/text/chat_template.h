// Chat templates: Jinja as transformers renders it (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop
// controls, generation blocks).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/tokenizer.h"

namespace octet::text {

// What a render may use at most; beyond it, rendering ends with an error.
struct RenderLimits {
  std::int64_t max_steps = 2'000'000;                    // evaluated nodes and loop turns
  std::size_t max_output_bytes = std::size_t{16} << 20;  // also of any single string value
  int max_depth = 200;                                   // macros and nested expressions
};

struct RenderInput {
  Json messages = Json::array();
  Json tools = nullptr;
  Json documents = nullptr;
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  Json variables = Json::object();  // every other name the template sees: bos_token, eos_token, chat_template_kwargs
  std::int64_t now = 0;             // Unix time for strftime_now, seconds
};

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
