#include "octet/text/chat_template.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <utility>

#include "octet/base/utf8.h"
#include "octet/text/jinja/input.h"
#include "octet/text/jinja/interpreter.h"
#include "octet/text/jinja/parser.h"
#include "octet/text/jinja/strings.h"

namespace octet::text {
namespace {

constexpr std::size_t kMaxSource = std::size_t{4} << 20;
constexpr std::string_view kContinueTag = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::array<const char*, 3> kReasoningKeys{"reasoning_content", "thinking", "reasoning"};

// Messages as transformers hands them to a template: no null members, and reasoning under every name that templates
// read.
Result<Json> effective_messages(const Json& messages, bool keep_nulls) {
  if (!messages.is_array()) return fail(ErrorCode::kInvalid, "messages must be a list");
  Json out = Json::array();
  for (const Json& message : messages) {
    if (!message.is_object()) return fail(ErrorCode::kInvalid, "a message must be an object");
    Json kept = Json::object();
    for (const auto& [key, value] : message.items()) {
      if (keep_nulls || !value.is_null()) kept[key] = value;
    }
    for (const char* name : kReasoningKeys) {
      const auto found = kept.find(name);
      if (found == kept.end() || found->is_null()) continue;
      const Json reasoning = *found;
      if (!kept.contains("thinking")) {
        Json with_thinking = Json::object();
        with_thinking["thinking"] = reasoning;
        for (auto& [key, value] : kept.items()) with_thinking[key] = std::move(value);
        kept = std::move(with_thinking);
      }
      kept["reasoning_content"] = reasoning;
      break;
    }
    out.push_back(std::move(kept));
  }
  return out;
}

// Puts the tag behind the text of the final message and returns that text.
Result<std::string> mark_final_message(Json& messages) {
  if (messages.empty()) return fail(ErrorCode::kInvalid, "continue_final_message needs a message");
  Json& last = messages.back();
  const auto content = last.find("content");
  if (content == last.end()) return fail(ErrorCode::kInvalid, "the final message has no content to continue");
  Json* text = nullptr;
  if (content->is_string()) text = &*content;
  if (content->is_array()) {
    for (auto part = content->rbegin(); part != content->rend() && text == nullptr; ++part) {
      if (part->is_object() && part->contains("text") && (*part)["text"].is_string()) text = &(*part)["text"];
    }
  }
  if (text == nullptr) return fail(ErrorCode::kInvalid, "the final message has no text to continue");
  std::string before = text->get<std::string>();
  *text = before + std::string(kContinueTag);
  return before;
}

// Cuts the rendered text right after the final message. A template that trimmed it also took the tag's space: then
// space is trimmed here too.
Result<jinja::SpanText> cut_after_final_message(jinja::SpanText text, const std::string& final_text) {
  const std::string trimmed = jinja::strip(jinja::SpanText(final_text), std::nullopt, jinja::Side::kBoth).bytes();
  const std::size_t tag = text.bytes().rfind(kContinueTag.substr(0, kContinueTag.size() - 1));
  if (tag == std::string::npos || text.bytes().find(trimmed) == std::string::npos) {
    return fail(ErrorCode::kInvalid, "continue_final_message: the template does not render the final message as it is");
  }
  const bool whole = std::string_view(text.bytes()).substr(tag).starts_with(kContinueTag);
  text.truncate(tag);
  return whole ? std::move(text) : jinja::strip(text, std::nullopt, jinja::Side::kRight);
}

std::vector<TextSpan> spans_of(const jinja::SpanText& text) {
  std::vector<TextSpan> spans;
  std::size_t begin = 0;
  for (const auto& run : text.runs()) {
    spans.push_back({begin, run.end, run.is_data});
    begin = run.end;
  }
  return spans;
}

Error at_line(Error error, int line) {
  error.message = fmt::format("chat template, line {}: {}", line, error.message);
  return error;
}

}  // namespace

std::int64_t local_time(std::int64_t moment) {
  const auto seconds = static_cast<std::time_t>(moment);
  std::tm parts{};
  return localtime_r(&seconds, &parts) != nullptr ? moment + parts.tm_gmtoff : moment;
}

struct ChatTemplate::Program {
  jinja::Program code;
  bool reads_content = false;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program) : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string source) {
  if (source.size() > kMaxSource) {
    return fail(ErrorCode::kExhausted, "chat template: {} bytes, more than {}", source.size(), kMaxSource);
  }
  if (!is_valid_utf8(source)) return fail(ErrorCode::kInvalid, "chat template: not UTF-8");
  auto code = jinja::parse(source);
  if (!code) return std::unexpected(at_line({ErrorCode::kInvalid, code.error().message}, code.error().line));
  auto program = std::make_unique<Program>(*std::move(code));
  program->reads_content = source.find("content") != std::string::npos;
  return ChatTemplate(std::move(program));
}

Result<Rendered> ChatTemplate::render(const RenderInput& input, const RenderLimits& limits) const {
  OCTET_TRY(Json messages, effective_messages(input.messages, input.keep_nulls));
  std::string final_text;
  if (input.continue_final_message) {
    if (input.add_generation_prompt) {
      return fail(ErrorCode::kInvalid, "continue_final_message and add_generation_prompt exclude each other");
    }
    if (!program_->reads_content) {
      return fail(ErrorCode::kInvalid, "continue_final_message: the template does not use the content of messages");
    }
    OCTET_TRY(final_text, mark_final_message(messages));
  }
  jinja::Budget budget(limits);
  jinja::Heap heap(budget);
  jinja::Interpreter interpreter(program_->code, budget, heap, input.now);
  budget.set_exempt(true);
  const jinja::InputReader reader(heap);
  const auto define = [&](std::string_view name, const Json& json, jinja::Origin origin) -> Result<> {
    OCTET_TRY(jinja::Value value, reader.read(json, origin));
    interpreter.set_variable(name, std::move(value));
    return {};
  };
  for (const auto& [name, value] : input.client_variables.items()) {
    OCTET_TRY_VOID(define(name, value, jinja::Origin::kData));
  }
  for (const auto& [name, value] : input.variables.items()) {
    OCTET_TRY_VOID(define(name, value, jinja::Origin::kTemplate));
  }
  OCTET_TRY_VOID(define("messages", messages, jinja::Origin::kMessages));
  OCTET_TRY_VOID(define("tools", input.tools, jinja::Origin::kData));
  OCTET_TRY_VOID(define("documents", input.documents, jinja::Origin::kData));
  interpreter.set_variable("add_generation_prompt", jinja::Value(input.add_generation_prompt));
  budget.set_exempt(false);
  budget.restart();
  auto text = interpreter.run();
  if (!text) return std::unexpected(at_line(std::move(text).error(), interpreter.line()));
  if (input.continue_final_message) {
    OCTET_TRY(text, cut_after_final_message(*std::move(text), final_text));
  }
  return Rendered{text->bytes(), spans_of(*text)};
}

}  // namespace octet::text
