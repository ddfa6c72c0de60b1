#include "octet/server/messages_answer.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "octet/server/messages_api.h"

namespace octet::server {
namespace {

using engine::FinishReason;

std::string_view stop_reason(const engine::Output& last) {
  if (last.finish == FinishReason::kLength) return "max_tokens";
  return last.stop_string ? "stop_sequence" : "end_turn";
}

// type comes first in the data, as everywhere in this API.
void append_event(std::string& out, std::string_view type, const Json& members) {
  fmt::format_to(std::back_inserter(out), "event: {0}\ndata: {{\"type\":\"{0}\"", type);
  if (!members.empty()) out += ',';
  out += members.empty() ? std::string("}") : dump_json(members).substr(1);
  out += "\n\n";
}

}  // namespace

MessageWriter::MessageWriter(AnswerFrame frame, bool tell_cached)
    : frame_(std::move(frame)), tell_cached_(tell_cached) {}

void MessageWriter::take(const engine::Output& output) {
  last_.prompt_tokens = output.prompt_tokens;
  last_.cached_tokens = output.cached_tokens;
  last_.completion_tokens = output.completion_tokens;
  if (complete()) return;
  last_.finish = output.finish;
  last_.stop_string = output.stop_string;
}

void MessageWriter::add(std::int32_t /*choice*/, engine::Output&& output) {
  take(output);
  text_ += output.text;
}

Json MessageWriter::usage(std::int32_t output_tokens) const {
  Json out;
  out["input_tokens"] = last_.prompt_tokens - (tell_cached_ ? last_.cached_tokens : 0);
  if (tell_cached_) out["cache_read_input_tokens"] = last_.cached_tokens;
  out["output_tokens"] = output_tokens;
  return out;
}

Json MessageWriter::stop_sequence() const { return last_.stop_string ? Json(*last_.stop_string) : Json(nullptr); }

Json MessageWriter::message() const {
  return {{"id", frame_.id}, {"type", "message"}, {"role", "assistant"}, {"model", frame_.model}};
}

std::string MessageWriter::whole() {
  Json out = message();
  out["content"] = Json::array({{{"type", "text"}, {"text", text_}}});
  out["stop_reason"] = stop_reason(last_);
  if (last_.stop_string) out["stop_sequence"] = stop_sequence();
  out["usage"] = usage(last_.completion_tokens);
  return dump_json(out);
}

// The first event tells the prompt's tokens, which come with the first output.
void MessageWriter::begin(std::string& /*out*/) {}

void MessageWriter::open_message(std::string& out) {
  opened_ = true;
  Json empty = message();
  empty["content"] = Json::array();
  empty["stop_reason"] = nullptr;
  empty["stop_sequence"] = nullptr;
  empty["usage"] = usage(0);
  append_event(out, "message_start", {{"message", std::move(empty)}});
  append_event(out, "content_block_start", {{"index", 0}, {"content_block", {{"type", "text"}, {"text", ""}}}});
  append_event(out, "ping", Json::object());
}

void MessageWriter::event(std::string& out, std::int32_t /*choice*/, const engine::Output& output) {
  take(output);
  if (!opened_) open_message(out);
  if (output.text.empty()) return;
  out +=
      "event: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":)";
  append_json_string(out, output.text);
  out += "}}\n\n";
}

void MessageWriter::end(std::string& out) {
  append_event(out, "content_block_stop", {{"index", 0}});
  append_event(out, "message_delta",
               {{"delta", {{"stop_reason", stop_reason(last_)}, {"stop_sequence", stop_sequence()}}},
                {"usage", usage(last_.completion_tokens)}});
  append_event(out, "message_stop", Json::object());
}

void MessageWriter::failure(std::string& out, const ApiError& error) {
  fmt::format_to(std::back_inserter(out), "event: error\ndata: {}\n\n", anthropic_error_json(error));
}

}  // namespace octet::server
