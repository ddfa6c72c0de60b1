#include "octet/server/responses_answer.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace octet::server {

using engine::FinishReason;

ResponseWriter::ResponseWriter(AnswerFrame frame, std::string message_id, ResponseEcho echo)
    : frame_(std::move(frame)), message_id_(std::move(message_id)), echo_(std::move(echo)) {
  delta_members_ =
      fmt::format(R"(,"item_id":"{}","output_index":0,"content_index":0,"logprobs":[],"delta":)", message_id_);
}

void ResponseWriter::take(const engine::Output& output) {
  text_ += output.text;
  last_.prompt_tokens = output.prompt_tokens;
  last_.cached_tokens = output.cached_tokens;
  last_.completion_tokens = output.completion_tokens;
  if (!complete()) last_.finish = output.finish;
}

void ResponseWriter::add(std::int32_t /*choice*/, engine::Output&& output) { take(output); }

Json ResponseWriter::part(bool begun) const {
  return {{"type", "output_text"},
          {"text", begun ? "" : text_},
          {"annotations", Json::array()},
          {"logprobs", frame_.stream ? Json::array() : Json(nullptr)}};
}

Json ResponseWriter::message(bool begun) const {
  Json content = Json::array();
  if (!begun) content.push_back(part(false));
  return {{"id", message_id_},   {"type", "message"},
          {"role", "assistant"}, {"status", begun ? "in_progress" : (cut() ? "incomplete" : "completed")},
          {"phase", nullptr},    {"content", std::move(content)}};
}

Json ResponseWriter::usage() const {
  return {{"input_tokens", last_.prompt_tokens},
          {"input_tokens_details",
           {{"cached_tokens", last_.cached_tokens},
            {"cache_write_tokens", 0},
            {"input_tokens_per_turn", Json::array()},
            {"cached_tokens_per_turn", Json::array()}}},
          {"output_tokens", last_.completion_tokens},
          {"output_tokens_details",
           {{"reasoning_tokens", 0},
            {"tool_output_tokens", 0},
            {"output_tokens_per_turn", Json::array()},
            {"tool_output_tokens_per_turn", Json::array()}}},
          {"total_tokens", std::int64_t{last_.prompt_tokens} + last_.completion_tokens}};
}

Json ResponseWriter::response(bool begun) const {
  Json out;
  out["id"] = frame_.id;
  out["object"] = "response";
  out["created_at"] = frame_.created;
  out["status"] = begun ? "in_progress" : (cut() ? "incomplete" : "completed");
  out["incomplete_details"] = !begun && cut() ? Json{{"reason", "max_output_tokens"}} : Json(nullptr);
  out["model"] = frame_.model;
  out["output"] = Json::array();
  if (!begun) out["output"].push_back(message(false));
  out["usage"] = begun ? Json(nullptr) : usage();
  out["instructions"] = echo_.instructions;
  out["metadata"] = echo_.metadata;
  out["max_output_tokens"] = echo_.max_output_tokens;
  out["temperature"] = echo_.temperature;
  out["top_p"] = echo_.top_p;
  out["presence_penalty"] = echo_.presence_penalty;
  out["frequency_penalty"] = echo_.frequency_penalty;
  out["truncation"] = echo_.truncation;
  out["text"] = echo_.text;
  out["reasoning"] = echo_.reasoning;
  out["user"] = echo_.user;
  out["parallel_tool_calls"] = echo_.parallel_tool_calls;
  out["tool_choice"] = echo_.tool_choice;
  out["tools"] = Json::array();
  out["background"] = false;
  out["service_tier"] = "auto";
  for (const char* unused : {"max_tool_calls", "previous_response_id", "prompt", "top_logprobs", "input_messages",
                             "output_messages", "kv_transfer_params", "ec_transfer_params"}) {
    out[unused] = nullptr;
  }
  return out;
}

std::string ResponseWriter::whole() { return dump_json(response(false)); }

Json ResponseWriter::place() const { return {{"item_id", message_id_}, {"output_index", 0}, {"content_index", 0}}; }

void ResponseWriter::open(std::string& out, std::string_view type) {
  fmt::format_to(std::back_inserter(out), "event: {0}\ndata: {{\"type\":\"{0}\",\"sequence_number\":{1}", type,
                 sequence_++);
}

void ResponseWriter::append(std::string& out, std::string_view type, const Json& members) {
  open(out, type);
  out += ',';
  out += std::string_view(dump_json(members)).substr(1);
  out += "\n\n";
}

void ResponseWriter::begin(std::string& out) {
  append(out, "response.created", {{"response", response(true)}});
  append(out, "response.in_progress", {{"response", response(true)}});
  append(out, "response.output_item.added", {{"output_index", 0}, {"item", message(true)}});
  Json added = place();
  added["part"] = part(true);
  append(out, "response.content_part.added", added);
}

void ResponseWriter::event(std::string& out, std::int32_t /*choice*/, const engine::Output& output) {
  take(output);
  if (output.text.empty()) return;
  open(out, "response.output_text.delta");
  out += delta_members_;
  append_json_string(out, output.text);
  out += "}\n\n";
}

void ResponseWriter::end(std::string& out) {
  Json text = place();
  text["text"] = text_;
  text["logprobs"] = Json::array();
  append(out, "response.output_text.done", text);
  Json done = place();
  done["part"] = part(false);
  append(out, "response.content_part.done", done);
  append(out, "response.output_item.done", {{"output_index", 0}, {"item", message(false)}});
  append(out, cut() ? "response.incomplete" : "response.completed", {{"response", response(false)}});
}

void ResponseWriter::failure(std::string& out, const ApiError& error) {
  append(out, "error", {{"code", error.type}, {"message", error.message}, {"param", nullptr}});
}

}  // namespace octet::server
