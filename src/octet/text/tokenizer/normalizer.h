// Normalizers of a tokenizer.json: text to text, before anything is split.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/json.h"

namespace octet::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // UTF-8 to UTF-8.
  virtual Result<std::string> apply(std::string text) const = 0;
};

// NFC, NFD, NFKC, NFKD, Lowercase, Sequence. Another type is an error that names it. path: for messages.
Result<std::unique_ptr<Normalizer>> make_normalizer(const Json& json, std::string_view path);
std::unique_ptr<Normalizer> make_nfc_normalizer();

}  // namespace octet::text
