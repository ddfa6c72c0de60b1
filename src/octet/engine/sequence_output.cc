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
  Piece piece{.tokens = tokens.size(), .shown = tokens.size()};
  if (!detokenizer_) return piece;
  const std::size_t readable = tokens.size() - (finish == FinishReason::kStop && !include_stop_ ? 1 : 0);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    begins_.push_back(made_);
    if (i >= readable) continue;
    const std::string text = detokenizer_->push(tokens[i]);
    made_ += text.size();
    if (unstoppable_ > 0) {
      --unstoppable_;
      give(text, piece);
    } else if (take(text, piece)) {
      piece.tokens = i + 1;
      show(false, piece);
      return piece;
    }
  }
  const bool ended = finish != FinishReason::kNone;
  if (ended) {
    const std::string rest = detokenizer_->flush();
    made_ += rest.size();
    if (!take(rest, piece) && stops_) give(stops_->flush(), piece);
  }
  show(ended, piece);
  return piece;
}

void SequenceOutput::give(std::string_view text, Piece& piece) {
  if (want_text_) piece.text += text;
  given_ += text.size();
}

bool SequenceOutput::take(std::string_view text, Piece& piece) {
  if (!stops_) {
    give(text, piece);
    return false;
  }
  text::StopMatcher::Output out = stops_->push(text);
  give(out.text, piece);
  piece.stop_string = std::move(out.matched);
  return piece.stop_string.has_value();
}

// Where a stop string may come, tokens whose text has begun to come out; else, and at the end, all. So the tokens of a
// stop string that is cut off are never shown.
void SequenceOutput::show(bool all, Piece& piece) {
  std::size_t shown = begins_.size();
  if (piece.stop_string || (!all && stops_)) {
    shown = static_cast<std::size_t>(std::ranges::lower_bound(begins_, given_) - begins_.begin());
  }
  piece.shown = shown;
  begins_.erase(begins_.begin(), begins_.begin() + static_cast<std::ptrdiff_t>(shown));
}

}  // namespace octet::engine
