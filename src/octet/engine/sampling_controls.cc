#include "octet/engine/sampling_controls.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "octet/base/check.h"

namespace octet::engine {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

class WordWriter {
 public:
  explicit WordWriter(std::vector<std::int32_t>& words) : words_(words) {}
  void add(std::int32_t value) { words_.push_back(value); }
  void add(float value) { words_.push_back(std::bit_cast<std::int32_t>(value)); }
  void add(std::span<const TokenId> tokens) {
    add(static_cast<std::int32_t>(tokens.size()));
    words_.insert(words_.end(), tokens.begin(), tokens.end());
  }

 private:
  std::vector<std::int32_t>& words_;
};

class WordReader {
 public:
  explicit WordReader(std::span<const std::int32_t> words) : words_(words) {}
  std::int32_t integer() {
    OCTET_CHECK(at_ < words_.size());
    return words_[at_++];
  }
  float real() { return std::bit_cast<float>(integer()); }
  std::vector<TokenId> tokens() {
    const auto count = static_cast<std::size_t>(integer());
    OCTET_CHECK(count <= words_.size() - at_);
    const auto part = words_.subspan(at_, count);
    at_ += count;
    return {part.begin(), part.end()};
  }

 private:
  std::span<const std::int32_t> words_;
  std::size_t at_ = 0;
};

}  // namespace

bool SamplingControls::neutral() const {
  return repetition_penalty == 1.0f && presence_penalty == 0.0f && frequency_penalty == 0.0f && logit_bias.empty() &&
         allowed.empty() && bad_words.empty() && min_tokens == 0;
}

ControlState::ControlState(SamplingControls controls, std::span<const TokenId> tokens, std::int32_t prompt_tokens)
    : controls_(std::move(controls)),
      counts_tokens_(controls_.repetition_penalty != 1.0f || controls_.presence_penalty != 0.0f ||
                     controls_.frequency_penalty != 0.0f) {
  const auto prompt = tokens.first(static_cast<std::size_t>(prompt_tokens));
  if (controls_.repetition_penalty != 1.0f) {
    for (const TokenId token : prompt) counts_[token].in_prompt = true;
  }
  for (const TokenId token : tokens.subspan(prompt.size())) said(token);
}

void ControlState::said(TokenId token) {
  if (counts_tokens_) ++counts_[token].in_output;
  output_.push_back(token);
}

ops::LogitEdit& ControlState::edit_of(TokenId token, std::vector<ops::LogitEdit>& edits) {
  const auto [entry, is_new] = edited_.emplace(token, edits.size());
  if (is_new) edits.push_back({.token = token});
  return edits[entry->second];
}

// Among allowed tokens only, one without an edit is forbidden already.
void ControlState::forbid(TokenId token, std::vector<ops::LogitEdit>& edits) {
  if (!controls_.allowed.empty() && !edited_.contains(token)) return;
  edit_of(token, edits).bias = kForbidden;
}

void ControlState::add_edits(std::vector<ops::LogitEdit>& edits, ops::SamplingRow& row) {
  edited_.clear();
  const std::size_t first = edits.size();
  const bool only_allowed = !controls_.allowed.empty();
  for (const TokenId token : controls_.allowed) edit_of(token, edits);
  for (const auto& [token, bias] : controls_.logit_bias) {
    if (only_allowed && !edited_.contains(token)) continue;
    edit_of(token, edits).bias += bias;
  }
  for (const auto& [token, count] : counts_) {
    if (only_allowed && !edited_.contains(token)) continue;
    ops::LogitEdit& edit = edit_of(token, edits);
    edit.repetition = controls_.repetition_penalty;
    if (count.in_output > 0) {
      edit.subtract = controls_.presence_penalty + controls_.frequency_penalty * static_cast<float>(count.in_output);
    }
  }
  for (const auto& word : controls_.bad_words) {
    const auto before = std::span(word).first(word.size() - 1);
    if (output_.size() < before.size()) continue;
    if (std::ranges::equal(before, std::span(output_).last(before.size()))) forbid(word.back(), edits);
  }
  if (output_.size() < static_cast<std::size_t>(controls_.min_tokens)) {
    for (const TokenId token : controls_.ends) forbid(token, edits);
  }
  row.first_edit = static_cast<std::int32_t>(first);
  row.edits = static_cast<std::int32_t>(edits.size() - first);
  row.only_edited = only_allowed;
}

void append_words(const SamplingControls& controls, std::span<const TokenId> tokens, std::int32_t prompt_tokens,
                  std::vector<std::int32_t>& words) {
  WordWriter out(words);
  out.add(controls.repetition_penalty);
  out.add(controls.presence_penalty);
  out.add(controls.frequency_penalty);
  out.add(static_cast<std::int32_t>(controls.logit_bias.size()));
  for (const auto& [token, bias] : controls.logit_bias) {
    out.add(token);
    out.add(bias);
  }
  out.add(controls.allowed);
  out.add(static_cast<std::int32_t>(controls.bad_words.size()));
  for (const auto& word : controls.bad_words) out.add(word);
  out.add(controls.min_tokens);
  out.add(controls.ends);
  out.add(prompt_tokens);
  out.add(tokens);
}

ControlState read_words(std::span<const std::int32_t> words) {
  WordReader in(words);
  SamplingControls controls;
  controls.repetition_penalty = in.real();
  controls.presence_penalty = in.real();
  controls.frequency_penalty = in.real();
  controls.logit_bias.resize(static_cast<std::size_t>(in.integer()));
  for (auto& [token, bias] : controls.logit_bias) {
    token = in.integer();
    bias = in.real();
  }
  controls.allowed = in.tokens();
  controls.bad_words.resize(static_cast<std::size_t>(in.integer()));
  for (auto& word : controls.bad_words) word = in.tokens();
  controls.min_tokens = in.integer();
  controls.ends = in.tokens();
  const std::int32_t prompt_tokens = in.integer();
  const std::vector<TokenId> tokens = in.tokens();
  return {std::move(controls), tokens, prompt_tokens};
}

}  // namespace octet::engine
