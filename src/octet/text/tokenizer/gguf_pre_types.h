// tokenizer.ggml.pre: how a byte-level vocabulary inside a GGUF file is used. What a name means is what the model whose
// name it is published.
#pragma once
#include <memory>
#include <string_view>

#include "octet/base/error.h"
#include "octet/text/tokenizer/pre_tokenizer.h"

namespace octet::text {

struct GgufPreType {
  std::string_view name;
  Result<std::unique_ptr<PreTokenizer>> (*make)() = nullptr;
  bool nfc = false;          // text is normalized to NFC
  bool whole_words = false;  // a piece that is a token is that token (ignore_merges)
  bool bos = false;          // add_bos_token where the file does not say
};

// Null: no such name is known.
const GgufPreType* find_gguf_pre_type(std::string_view name);

}  // namespace octet::text
