#include "octet/server/openai_logprobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "octet/base/utf8.h"
#include "octet/server/openai_answer.h"

namespace octet::server {
namespace {

using engine::Logprob;
using engine::TokenScore;

constexpr float kLowest = -9999.0F;  // JSON has no infinity; vLLM's floor

void append_number(std::string& out, float logprob) {
  fmt::format_to(std::back_inserter(out), "{}", logprob >= kLowest ? logprob : kLowest);
}

// Calls one(item) for each, with commas between what they append.
template <typename Items, typename One>
void append_list(std::string& out, const Items& items, const One& one) {
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) out += ',';
    one(item);
  }
}

// "token", "logprob" and "bytes" of a chat's entry, without braces.
void append_entry(std::string& out, const TokenScore& score, const TokenNames& names) {
  out += "\"token\":";
  append_json_string(out, names.name(score.token));
  out += ",\"logprob\":";
  append_number(out, score.logprob);
  out += ",\"bytes\":[";
  append_list(out, names.bytes(score.token),
              [&](char byte) { out += std::to_string(static_cast<unsigned char>(byte)); });
  out += ']';
}

// {"name": logprob, ...}: the token itself, then the likeliest. Tokens of one name are told once.
void append_top(std::string& out, const Logprob& logprob, const TokenNames& names) {
  std::set<std::string> seen;
  const auto add = [&](const TokenScore& score) {
    std::string name = names.name(score.token);
    if (seen.contains(name)) return;
    if (!seen.empty()) out += ',';
    append_json_string(out, name);
    out += ':';
    append_number(out, score.logprob);
    seen.insert(std::move(name));
  };
  out += '{';
  add(logprob.score);
  std::ranges::for_each(logprob.top, add);
  out += '}';
}

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string TokenNames::name(text::TokenId id) const {
  if (as_ids_ || tokenizer_ == nullptr) return fmt::format("token_id:{}", id);
  return repair_utf8(tokenizer_->token_bytes(id));
}

std::string TokenNames::bytes(text::TokenId id) const {
  return tokenizer_ == nullptr ? std::string() : tokenizer_->token_bytes(id);
}

void append_chat_logprobs(std::string& out, std::span<const Logprob> logprobs, const TokenNames& names) {
  out += "{\"content\":[";
  append_list(out, logprobs, [&](const Logprob& logprob) {
    out += '{';
    append_entry(out, logprob.score, names);
    out += ",\"top_logprobs\":[";
    append_list(out, logprob.top, [&](const TokenScore& score) {
      out += '{';
      append_entry(out, score, names);
      out += '}';
    });
    out += "]}";
  });
  out += "]}";
}

// A token that goes on with a character begins where that character does.
std::int64_t CompletionLogprobs::offset_of_next(const std::string& bytes) {
  const std::int64_t offset =
      !bytes.empty() && continues_character(bytes[0]) && characters_ > 0 ? characters_ - 1 : characters_;
  characters_ += std::ranges::count_if(bytes, [](char byte) { return !continues_character(byte); });
  return offset;
}

void CompletionLogprobs::append(std::string& out, std::optional<text::TokenId> first, std::span<const Logprob> logprobs,
                                const TokenNames& names) {
  std::vector<text::TokenId> tokens;
  if (first) tokens.push_back(*first);
  for (const Logprob& logprob : logprobs) tokens.push_back(logprob.score.token);
  out += "{\"text_offset\":[";
  append_list(out, tokens, [&](text::TokenId id) { out += std::to_string(offset_of_next(names.bytes(id))); });
  out += "],\"token_logprobs\":[";
  if (first) out += logprobs.empty() ? "null" : "null,";
  append_list(out, logprobs, [&](const Logprob& logprob) { append_number(out, logprob.score.logprob); });
  out += "],\"tokens\":[";
  append_list(out, tokens, [&](text::TokenId id) { append_json_string(out, names.name(id)); });
  out += "],\"top_logprobs\":[";
  if (first) out += logprobs.empty() ? "null" : "null,";
  append_list(out, logprobs, [&](const Logprob& logprob) { append_top(out, logprob, names); });
  out += "]}";
}

void append_prompt_logprobs(std::string& out, std::span<const Logprob> logprobs, const TokenNames& names) {
  out += "[null";
  for (const Logprob& logprob : logprobs) {
    std::int32_t rank = 0;
    const auto add = [&](const TokenScore& score, std::int32_t place) {
      fmt::format_to(std::back_inserter(out), "\"{}\":{{\"logprob\":", score.token);
      append_number(out, score.logprob);
      fmt::format_to(std::back_inserter(out), ",\"rank\":{},\"decoded_token\":", place);
      append_json_string(out, names.name(score.token));
      out += '}';
    };
    out += ",{";
    add(logprob.score, logprob.rank);
    for (const TokenScore& score : logprob.top) {
      ++rank;
      if (score.token == logprob.score.token) continue;
      out += ',';
      add(score, rank);
    }
    out += '}';
  }
  out += ']';
}

}  // namespace octet::server
