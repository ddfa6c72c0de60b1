#include "octet/bench/answer_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "octet/base/utf8.h"

namespace octet::bench {
namespace {

constexpr std::size_t kMaxError = 300;
constexpr std::size_t kMaxLine = std::size_t{64} << 20;
constexpr std::int64_t kMostTokens = 10'000'000;  // that an answer is believed to have
constexpr JsonLimits kChunkLimits{.allow_duplicate_keys = true};

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string_view text_of(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? std::string_view(value->get_ref<const std::string&>())
                                                : std::string_view();
}

std::optional<std::int64_t> count_of(const Json& object, const char* key) {
  const Json* value = member(object, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return std::clamp<std::int64_t>(value->get<std::int64_t>(), 0, kMostTokens);
}

std::int64_t length_of(const Json* list) {
  return list != nullptr && list->is_array() ? static_cast<std::int64_t>(list->size()) : 0;
}

// Tokens that a choice itself lists; 0: it does not.
std::int64_t listed_tokens(const Json& choice) {
  if (const std::int64_t ids = length_of(member(choice, "token_ids")); ids > 0) return ids;
  const Json* logprobs = member(choice, "logprobs");
  if (logprobs == nullptr) return 0;
  return std::max(length_of(member(*logprobs, "tokens")), length_of(member(*logprobs, "content")));
}

std::string one_line(std::string_view text) {
  std::string out = repair_utf8(text.substr(0, kMaxError));
  std::ranges::replace_if(out, [](unsigned char c) { return c < ' '; }, ' ');
  return out;
}

// {"error": {"message": ...}}, {"error": ...}, {"message": ...}, {"detail": ...}
std::string message_of(const Json& json) {
  const Json* error = member(json, "error");
  for (const Json* from : {error, &json}) {
    if (from == nullptr) continue;
    if (from->is_string()) return one_line(from->get_ref<const std::string&>());
    for (const char* key : {"message", "detail"}) {
      if (const std::string_view text = text_of(*from, key); !text.empty()) return one_line(text);
    }
  }
  return one_line(dump_json(error != nullptr ? *error : json));
}

}  // namespace

std::string error_text(std::string_view body) {
  const auto json = parse_json(body, kChunkLimits);
  return json && json->is_object() ? message_of(*json) : one_line(body);
}

AnswerReader::AnswerReader(Api api, bool streamed, const text::Tokenizer* tokenizer)
    : api_(api), streamed_(streamed), tokenizer_(tokenizer) {}

void AnswerReader::broken(std::string error) {
  if (error_.empty()) error_ = std::move(error);
}

void AnswerReader::bytes(std::int64_t ns, std::string_view bytes) {
  if (!streamed_ || status_ != 200) {
    if (buffer_.size() + bytes.size() <= kMaxLine) buffer_ += bytes;
    return;
  }
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      if (buffer_.size() + bytes.size() > kMaxLine) return broken("a line of the stream is longer than 64 MiB");
      buffer_ += bytes;
      return;
    }
    std::string_view whole = bytes.substr(0, end);
    if (!buffer_.empty()) {
      buffer_ += whole;
      whole = buffer_;
    }
    if (whole.ends_with('\r')) whole.remove_suffix(1);
    line(ns, whole);
    buffer_.clear();
    bytes.remove_prefix(end + 1);
  }
}

// Of the event stream format: data lines count, the rest (comments, names, ids) does not.
void AnswerReader::line(std::int64_t ns, std::string_view line) {
  if (line.empty()) {
    if (has_data_) event(ns, data_);
    data_.clear();
    has_data_ = false;
    return;
  }
  if (!line.starts_with("data:")) return;
  line.remove_prefix(5);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += line;
  has_data_ = true;
}

void AnswerReader::event(std::int64_t ns, std::string_view data) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const auto json = parse_json(data, kChunkLimits);
  if (!json || !json->is_object()) {
    return broken(fmt::format("broken chunk: {}", json ? "no object" : one_line(json.error().message)));
  }
  chunk(ns, *json);
}

void AnswerReader::usage(const Json& usage) {
  if (const auto prompt = count_of(usage, "prompt_tokens")) prompt_tokens_ = prompt;
  if (const auto completion = count_of(usage, "completion_tokens")) completion_tokens_ = completion;
  if (const Json* details = member(usage, "prompt_tokens_details")) {
    if (const auto cached = count_of(*details, "cached_tokens")) cached_tokens_ = cached;
  }
}

void AnswerReader::chunk(std::int64_t ns, const Json& json) {
  if (member(json, "error") != nullptr) return broken(fmt::format("error in the stream: {}", message_of(json)));
  const std::int64_t before = completion_tokens_.value_or(0);
  if (const Json* told = member(json, "usage")) usage(*told);
  const Json* choices = member(json, "choices");
  if (choices == nullptr || !choices->is_array()) return;
  // Usage in every chunk tells how many tokens this one brought.
  const std::int64_t counted = std::max<std::int64_t>(completion_tokens_.value_or(0) - before, 0);
  for (const Json& one : *choices) choice(ns, one, counted);
}

void AnswerReader::choice(std::int64_t ns, const Json& choice, std::int64_t counted) {
  std::string_view answer = text_of(choice, "text"), thought;
  bool tool_call = false;
  if (const Json* delta = member(choice, "delta"); delta != nullptr && api_ == Api::kChat) {
    answer = text_of(*delta, "content");
    thought = text_of(*delta, "reasoning_content");
    if (thought.empty()) thought = text_of(*delta, "reasoning");
    tool_call = length_of(member(*delta, "tool_calls")) > 0;
  }
  const std::int64_t listed = listed_tokens(choice);
  const bool has_content = !answer.empty() || !thought.empty() || tool_call;
  const bool is_end = member(choice, "finish_reason") != nullptr;
  finished_ = finished_ || is_end;
  if (!has_content && (is_end || (listed == 0 && counted == 0))) return;
  if (first_answer_ns_ < 0 && (!answer.empty() || tool_call)) first_answer_ns_ = ns;
  text_ += answer;
  reasoning_ += thought;
  arrive(ns, std::max<std::int64_t>(listed > 0 ? listed : counted, 1));
}

void AnswerReader::arrive(std::int64_t ns, std::int64_t tokens) {
  tokens = std::min(tokens, kMostTokens - weight_);
  weight_ += tokens;
  if (!arrivals_.empty() && arrivals_.back().ns == ns) {
    arrivals_.back().tokens += static_cast<std::int32_t>(tokens);
  } else {
    arrivals_.push_back({.ns = ns, .tokens = static_cast<std::int32_t>(tokens)});
  }
}

void AnswerReader::whole(const Json& json) {
  if (member(json, "error") != nullptr) return broken(fmt::format("error in the answer: {}", message_of(json)));
  const Json* choices = member(json, "choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) return broken("the answer has no choices");
  for (const Json& one : *choices) {
    text_ += text_of(one, "text");
    if (const Json* message = member(one, "message")) {
      text_ += text_of(*message, "content");
      reasoning_ += text_of(*message, "reasoning_content");
    }
  }
  if (const Json* told = member(json, "usage")) usage(*told);
  finished_ = true;
}

std::int64_t AnswerReader::total_tokens(TokenSource& source) const {
  source = TokenSource::kUsage;
  if (completion_tokens_) return *completion_tokens_;
  source = TokenSource::kTokenizer;
  if (tokenizer_ != nullptr && (!text_.empty() || !reasoning_.empty())) {
    std::int64_t count = 0;
    for (const std::string& part : {reasoning_, text_}) {
      const auto ids = tokenizer_->encode(part, {.add_special = false});
      if (ids) count += static_cast<std::int64_t>(ids->size());
    }
    if (count > 0) return count;
  }
  source = TokenSource::kChunks;
  return weight_;
}

void AnswerReader::close(std::int64_t ns, RequestRecord& record) {
  record.ended_ns = ns;
  record.status = status_;
  record.first_answer_ns = first_answer_ns_;
  if (prompt_tokens_) record.input_tokens = static_cast<std::int32_t>(*prompt_tokens_);
  if (cached_tokens_) record.cached_tokens = static_cast<std::int32_t>(*cached_tokens_);
  const std::int64_t total = total_tokens(record.token_source);
  record.output_tokens = static_cast<std::int32_t>(total);
  // Shares that add up: each arrival ends where its part of all weights does.
  std::int64_t seen = 0, given = 0;
  for (Arrival& arrival : arrivals_) {
    seen += arrival.tokens;
    const std::int64_t upto = (total * seen + weight_ / 2) / weight_;
    arrival.tokens = static_cast<std::int32_t>(upto - given);
    given = upto;
  }
  record.arrivals = std::move(arrivals_);
}

void AnswerReader::finish(std::int64_t ns, RequestRecord& record) {
  if (status_ != 200) return fail(ns, fmt::format("HTTP {}: {}", status_, error_text(buffer_)), record);
  if (streamed_) {
    bytes(ns, "\n\n");  // a last line without its end counts
    if (!done_ && !finished_) broken("the stream ended without a finish");
  } else {
    const auto json = parse_json(buffer_, kChunkLimits);
    if (json) {
      whole(*json);
    } else {
      broken(fmt::format("broken answer: {}", one_line(json.error().message)));
    }
  }
  if (!error_.empty()) return fail(ns, error_, record);
  close(ns, record);
  record.outcome = Outcome::kCompleted;
}

void AnswerReader::fail(std::int64_t ns, std::string error, RequestRecord& record) {
  close(ns, record);
  record.outcome = error.empty() ? Outcome::kCut : Outcome::kFailed;
  record.error = error_.empty() ? std::move(error) : error_;
}

}  // namespace octet::bench
