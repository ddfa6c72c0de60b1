// tokenizer_config.json beside a vocabulary file that says less by itself.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer/added_tokens.h"

namespace octet::text {

struct TokenizerConfig {
  std::vector<AddedToken> added;  // added_tokens_decoder, by id
  std::optional<bool> add_bos, add_eos;
  std::optional<bool> add_prefix_space, legacy;
  std::optional<std::string> bos, eos;
  std::optional<std::string> pattern;  // how text is cut: "pattern" or "pat_str"
  std::string implementation;          // auto_map.AutoTokenizer, or tokenizer_class
};

// Empty text: there is no such file. Errors name the key.
Result<TokenizerConfig> read_tokenizer_config(std::string_view json);

}  // namespace octet::text
