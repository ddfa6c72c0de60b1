// Normalizers of a tokenizer.json: text to text, before anything is split.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/json.h"

namespace octet::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // UTF-8 to UTF-8.
  virtual Result<std::string> apply(std::string text) const = 0;
};

// NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Prepend, Replace, ByteLevel, Precompiled, Sequence.
// Another type is an error that names it. path: for messages.
Result<std::unique_ptr<Normalizer>> make_normalizer(const Json& json, std::string_view path);

// The same without JSON.
std::unique_ptr<Normalizer> make_nfc_normalizer();
std::unique_ptr<Normalizer> make_nfkc_normalizer();
// Every occurrence of the pattern, which may be empty, becomes the content.
std::unique_ptr<Normalizer> make_replace_normalizer(std::string pattern, std::string content);
// Error: the expression does not compile.
Result<std::unique_ptr<Normalizer>> make_regex_replace_normalizer(std::string_view regex, std::string content);
// Empty text stays empty.
std::unique_ptr<Normalizer> make_prepend_normalizer(std::string prefix);
// Takes white space off the ends.
std::unique_ptr<Normalizer> make_strip_normalizer(bool left, bool right);
std::unique_ptr<Normalizer> make_strip_accents_normalizer();
// Drops control characters; unusual white space becomes a space.
std::unique_ptr<Normalizer> make_nmt_normalizer();
// Spells the bytes of the text in the byte alphabet.
std::unique_ptr<Normalizer> make_byte_level_normalizer();
// A charsmap as `tokenizers` applies it, which is not as SentencePiece does (precompiled_charsmap.h). Error: bytes that
// are no charsmap.
Result<std::unique_ptr<Normalizer>> make_precompiled_normalizer(std::string charsmap);
std::unique_ptr<Normalizer> make_normalizer_sequence(std::vector<std::unique_ptr<Normalizer>> parts);

}  // namespace octet::text
