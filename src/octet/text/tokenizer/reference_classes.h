// Classes of characters as the Rust crates that `tokenizers` uses have them: their tables are older than ours.
#pragma once

namespace octet::text {

bool is_reference_punctuation(char32_t c);  // category P of Unicode 8, or ASCII punctuation
bool is_reference_mark(char32_t c);         // category M as unicode-normalization has it

}  // namespace octet::text
