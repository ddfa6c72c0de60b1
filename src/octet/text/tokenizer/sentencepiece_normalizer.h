// SentencePiece's own normalizer: charsmap, spaces, dummy prefix.
#pragma once
#include <memory>

#include "octet/base/error.h"
#include "octet/text/tokenizer/normalizer.h"
#include "octet/text/tokenizer/sentencepiece_file.h"

namespace octet::text {

// User-defined pieces pass unchanged. Error: the file's charsmap is none.
Result<std::unique_ptr<Normalizer>> make_sentencepiece_normalizer(const SentencePieceFile& file);

}  // namespace octet::text
