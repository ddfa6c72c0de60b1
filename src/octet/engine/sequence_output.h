// From the tokens of one sequence to the text a client gets: detokenizing, stop strings, what is held back.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/engine/request.h"
#include "octet/text/stop_matcher.h"
#include "octet/text/tokenizer.h"

namespace octet::engine {

class SequenceOutput {
 public:
  // tokenizer may be null where neither text nor stop strings are wanted; it must outlive this. prompt: the text
  // continues it.
  SequenceOutput(const text::Tokenizer* tokenizer, const SamplingParams& sampling, bool want_text,
                 std::span<const TokenId> prompt);

  struct Piece {
    std::string text;                        // ready to be given out
    std::size_t tokens = 0;                  // how many of those pushed belong to the answer: a stop string cuts it
    std::size_t shown = 0;                   // of all tokens not shown before: what is told of them can be given out
    std::optional<std::string> stop_string;  // it ended here
  };
  // The next tokens, and whether the sequence ends with them: then nothing is held back any more. The token that
  // ended it (kStop) is no text, unless the request wants it.
  Piece push(std::span<const TokenId> tokens, FinishReason finish);

 private:
  bool take(std::string_view text, Piece& piece);  // true: a stop string was found
  void give(std::string_view text, Piece& piece);
  void show(bool all, Piece& piece);

  bool want_text_;
  std::size_t unstoppable_;  // tokens that no stop string may end: the rest of min_tokens
  bool include_stop_;
  std::optional<text::Detokenizer> detokenizer_;
  std::optional<text::StopMatcher> stops_;
  // Bytes of text made and given out, and where in the former the tokens not shown yet begin.
  std::size_t made_ = 0, given_ = 0;
  std::vector<std::size_t> begins_;
};

}  // namespace octet::engine
