// Pre-tokenizers of a tokenizer.json: they cut text into the pieces that the model sees one by one.
#pragma once
#include <memory>
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

// Split, ByteLevel, Digits, Sequence. Another type is an error that names it. path: for messages.
Result<std::unique_ptr<PreTokenizer>> make_pre_tokenizer(const Json& json, std::string_view path);

// The same without JSON.
Result<std::unique_ptr<PreTokenizer>> make_split(std::string_view regex, SplitBehavior behavior);
Result<std::unique_ptr<PreTokenizer>> make_byte_level(bool add_prefix_space, bool use_regex);
std::unique_ptr<PreTokenizer> make_digits(bool individual);
std::unique_ptr<PreTokenizer> make_sequence(std::vector<std::unique_ptr<PreTokenizer>> parts);

}  // namespace octet::text
