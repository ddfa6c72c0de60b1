#include "octet/text/tokenizer/gguf_pre_types.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "octet/text/tokenizer/patterns.h"
#include "octet/text/tokenizer/word_matcher.h"

namespace octet::text {
namespace {

using Parts = std::vector<std::unique_ptr<PreTokenizer>>;
using Made = Result<std::unique_ptr<PreTokenizer>>;

// Split by each pattern in turn, then bytes.
Made by_patterns(std::initializer_list<std::string_view> regexes, bool digits_at_end = false) {
  Parts parts;
  for (const std::string_view regex : regexes) {
    OCTET_TRY(auto split, make_split(regex, SplitBehavior::kIsolated));
    parts.push_back(std::move(split));
  }
  if (digits_at_end) parts.push_back(make_digits(true));
  OCTET_TRY(auto bytes, make_byte_level(false, false));
  parts.push_back(std::move(bytes));
  return make_sequence(std::move(parts));
}

Made gpt2() { return make_byte_level(false, true); }
Made single_digits() {
  Parts parts;
  parts.push_back(make_digits(true));
  OCTET_TRY(auto bytes, make_byte_level(false, true));
  parts.push_back(std::move(bytes));
  return make_sequence(std::move(parts));
}
Made falcon() {
  Parts parts;
  parts.push_back(make_punctuation(SplitBehavior::kContiguous));
  OCTET_TRY(auto bytes, make_byte_level(false, true));
  parts.push_back(std::move(bytes));
  parts.push_back(make_digits(false));
  OCTET_TRY(auto split, make_split(patterns::kThreeAsciiDigits, SplitBehavior::kIsolated));
  parts.push_back(std::move(split));
  return make_sequence(std::move(parts));
}
Made qwen2() { return by_patterns({patterns::kQwen2}); }
Made qwen35() { return by_patterns({patterns::kQwen35}); }
Made llama3() { return by_patterns({patterns::kLlama3}); }
Made tekken() { return by_patterns({patterns::kTekken}); }
Made o200k() { return by_patterns({patterns::kO200k}); }
Made kimi() { return by_patterns({patterns::kKimi}); }
Made deepseek_v3() {
  return by_patterns({patterns::kDeepSeekNumbers, patterns::kDeepSeekHan, patterns::kDeepSeekWords});
}
Made deepseek_coder() {
  return by_patterns(
      {patterns::kLineEnd, patterns::kSpaceAndLetters, patterns::kSpaceAndPunctuation, patterns::kEastAsian}, true);
}
Made deepseek_llm() {
  return by_patterns({patterns::kLineEnd, patterns::kSpaceAndCasedLetters, patterns::kSpaceAndMarks,
                      patterns::kSpaceAtEnd, patterns::kEastAsian},
                     true);
}

constexpr auto kPreTypes = std::to_array<GgufPreType>({
    {.name = "gpt-2", .make = gpt2},
    {.name = "default", .make = gpt2},
    {.name = "phi-2", .make = gpt2},
    {.name = "mpt", .make = gpt2, .nfc = true},
    {.name = "olmo", .make = gpt2, .nfc = true},
    {.name = "smollm", .make = single_digits},
    {.name = "starcoder", .make = single_digits},
    {.name = "refact", .make = single_digits},
    {.name = "command-r", .make = single_digits, .nfc = true},
    {.name = "falcon", .make = falcon},
    {.name = "qwen2", .make = qwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .make = qwen2, .nfc = true},
    {.name = "qwen35", .make = qwen35, .nfc = true},
    {.name = "llama-bpe", .make = llama3, .whole_words = true, .bos = true},
    {.name = "llama3", .make = llama3, .whole_words = true, .bos = true},
    {.name = "llama-v3", .make = llama3, .whole_words = true, .bos = true},
    {.name = "chatglm-bpe", .make = llama3},
    {.name = "glm4", .make = llama3, .whole_words = true},
    {.name = "tekken", .make = tekken, .whole_words = true, .bos = true},
    {.name = "gpt-4o", .make = o200k},
    {.name = "minimax-m2", .make = o200k},
    {.name = "kimi-k2", .make = kimi},
    {.name = "deepseek-v3", .make = deepseek_v3},
    {.name = "deepseek-coder", .make = deepseek_coder},
    {.name = "deepseek-llm", .make = deepseek_llm},
});

}  // namespace

const GgufPreType* find_gguf_pre_type(std::string_view name) {
  const auto found = std::ranges::find(kPreTypes, name, &GgufPreType::name);
  return found == kPreTypes.end() ? nullptr : &*found;
}

}  // namespace octet::text
