// Template source to Program: the grammar of Jinja2 with loop controls and the generation tag.
#pragma once
#include <string_view>

#include "octet/text/jinja/ast.h"
#include "octet/text/jinja/lexer.h"

namespace octet::text::jinja {

std::expected<Program, SyntaxError> parse(std::string_view source);

}  // namespace octet::text::jinja
