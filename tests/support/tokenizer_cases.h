// Golden cases of a tokenizer: ids of three ways to encode, decoded text, decoding step by step.
#pragma once
#include <cstddef>
#include <string>

#include "octet/text/tokenizer.h"

namespace octet::testing {

// Checks every record of a file below the golden text folder; returns how many there were.
std::size_t check_tokenizer_cases(const text::Tokenizer& tokenizer, const std::string& name);

// Checks every record of the golden token streams that names this tokenizer, delta by delta and as a whole; returns how
// many there were.
std::size_t check_token_streams(const text::Tokenizer& tokenizer, const std::string& name);

}  // namespace octet::testing
