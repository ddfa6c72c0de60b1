// How far one word is from another, for "did you mean".
#pragma once
#include <cstddef>
#include <string_view>

namespace octet {

// Bytes to insert, delete or replace to make one of the other (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace octet
