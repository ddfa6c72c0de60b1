// A tokenizer whose tokens are the 256 bytes: text is split as finely as can be, inside characters, too.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/text/tokenizer.h"

namespace octet::testing {

constexpr text::TokenId kByteEos = 256;  // the one special token, "<|end|>"
constexpr text::TokenId kByteVocabulary = 257;

// tokenizer.json of a byte-level BPE without merges: the id of a byte is its value.
std::string byte_tokenizer_json();
std::unique_ptr<text::Tokenizer> make_byte_tokenizer();
std::vector<text::TokenId> bytes_of_text(std::string_view text);

}  // namespace octet::testing
