#include "octet/engine/sequence_output.h"

#include <algorithm>
#include <utility>

namespace octet::engine {
namespace {

// Enough of the prompt for a tokenizer to know whether a word goes on.
constexpr std::size_t kContextTokens = 8;

}  // namespace

SequenceOutput::SequenceOutput(const text::Tokenizer* tokenizer, const SamplingParams& sampling, bool want_text,
                               std::span<const TokenId> prompt)
    : want_text_(want_text),
      unstoppable_(static_cast<std::size_t>(std::max(0, sampling.controls.min_tokens))),
      include_stop_(sampling.include_stop_in_output) {
  if (tokenizer == nullptr || (!want_text && sampling.stop.empty())) return;
  detokenizer_.emplace(*tokenizer, sampling.skip_special_tokens, prompt.last(std::min(prompt.size(), kContextTokens)));
  if (!sampling.stop.empty()) stops_.emplace(sampling.stop, include_stop_);
}

SequenceOutput::Piece SequenceOutput::push(std::span<const TokenId> tokens, FinishReason finish) {
  Piece piece{.tokens = tokens.size()};
  if (!detokenizer_) return piece;
  const std::size_t shown = tokens.size() - (finish == FinishReason::kStop && !include_stop_ ? 1 : 0);
  for (std::size_t i = 0; i < shown; ++i) {
    if (unstoppable_ > 0) {
      --unstoppable_;
      const std::string text = detokenizer_->push(tokens[i]);
      if (want_text_) piece.text += text;
    } else if (take(detokenizer_->push(tokens[i]), piece)) {
      piece.tokens = i + 1;
      return piece;
    }
  }
  if (finish != FinishReason::kNone && !take(detokenizer_->flush(), piece) && stops_ && want_text_) {
    piece.text += stops_->flush();
  }
  return piece;
}

bool SequenceOutput::take(std::string_view text, Piece& piece) {
  if (!stops_) {
    if (want_text_) piece.text += text;
    return false;
  }
  text::StopMatcher::Output out = stops_->push(text);
  if (want_text_) piece.text += out.text;
  piece.stop_string = std::move(out.matched);
  return piece.stop_string.has_value();
}

}  // namespace octet::engine
