// What the lexer gives to the parser.
#pragma once
#include <string>

namespace octet::text::jinja {

enum class TokenKind {
  kData,           // text between tags, white space already trimmed
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kInteger,
  kFloat,
  kString,  // unescaped
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
};

}  // namespace octet::text::jinja
