// Pieces back to text, as SentencePiece does it.
#pragma once
#include <memory>

#include "octet/text/tokenizer/decoder.h"
#include "octet/text/tokenizer/sentencepiece_file.h"

namespace octet::text {

// Control pieces read as nothing, the unknown piece as its surface, marks as spaces; a mark at the very start goes.
// Bytes that never become a character are one U+FFFD each.
std::unique_ptr<Decoder> make_sentencepiece_decoder(const SentencePieceFile& file);

}  // namespace octet::text
