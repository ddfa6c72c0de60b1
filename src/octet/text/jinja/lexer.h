// Splits a template into tokens, as Jinja2 does with trim_blocks and lstrip_blocks.
#pragma once
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/jinja/token.h"

namespace octet::text::jinja {

// A failure of lexing or parsing: the message and the line (from 1).
struct SyntaxError {
  std::string message;
  int line = 1;
};

// The last token is kEnd.
std::expected<std::vector<Token>, SyntaxError> tokenize(std::string_view source);

}  // namespace octet::text::jinja
