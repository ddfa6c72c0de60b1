// Lists of modules that a quantisation leaves out.
#pragma once
#include <string_view>

namespace octet::formats {

// Whether a pattern of a list means the module ("model.layers.0.mlp.gate"). A name means itself and what stands below
// it, wherever its components follow one another in the module's name ("gate", "layers.0.mlp"); a name with * or ? is a
// glob over the whole name, or over the name of something above it; "re:" goes before a regular expression that matches
// from the name's start on, as Python's re.match. A pattern that is no regular expression, or longer than 1,024 bytes,
// means nothing.
bool matches_module(std::string_view pattern, std::string_view module);

}  // namespace octet::formats
