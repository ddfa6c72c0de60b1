// Pre-tokenizers of a tokenizer.json: they cut text into the pieces that the model sees one by one.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/tokenizer/pieces.h"

namespace octet::text {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Error: a pattern that passes its limit.
  virtual Result<> apply(Pieces& pieces) const = 0;
};

// What becomes of the matches of a pattern.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Split, ByteLevel, Digits, Metaspace, Punctuation, Whitespace, WhitespaceSplit, CharDelimiterSplit, BertPreTokenizer,
// FixedLength, Sequence. Another type is an error that names it. path: for messages.
Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer(const Json& json, std::string_view path);

// The same without JSON.
Result<std::unique_ptr<PreTokenizer>> make_split(std::string_view regex, SplitBehavior behavior, bool invert = false);
std::unique_ptr<PreTokenizer> make_string_split(std::string pattern, SplitBehavior behavior, bool invert = false);
Result<std::unique_ptr<PreTokenizer>> make_byte_level(bool add_prefix_space, bool use_regex);
std::unique_ptr<PreTokenizer> make_digits(bool individual);
// Where Metaspace puts its mark in front: of the piece with which the whole text begins, of every piece, nowhere.
enum class PrependScheme { kFirst, kAlways, kNever };
// Spaces become the mark (U+2581 in the published models); with split, every mark begins a piece.
std::unique_ptr<PreTokenizer> make_metaspace(std::string mark, PrependScheme scheme, bool split);
std::unique_ptr<PreTokenizer> make_punctuation(SplitBehavior behavior);
// Runs of word characters, and runs of what is neither word nor white space.
std::unique_ptr<PreTokenizer> make_whitespace();
std::unique_ptr<PreTokenizer> make_whitespace_split();
std::unique_ptr<PreTokenizer> make_delimiter_split(char32_t delimiter);
// White space goes, punctuation stands alone.
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer();
// Pieces of this many characters, at least 1.
std::unique_ptr<PreTokenizer> make_fixed_length(std::size_t length);
std::unique_ptr<PreTokenizer> make_sequence(std::vector<std::unique_ptr<PreTokenizer>> parts);

}  // namespace octet::text
