#include "octet/text/tokenizer/normalizer.h"

#include <utility>
#include <vector>

#include "octet/text/tokenizer/json_reader.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

class UnicodeNormalizer final : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form) : form_(form) {}
  Result<std::string> apply(std::string text) const override {
    if (is_ascii(text)) return text;
    return normalize(text, form_);
  }

 private:
  NormalForm form_;
};

class LowercaseNormalizer final : public Normalizer {
 public:
  Result<std::string> apply(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      append_lower(out, c.value);
      at += c.length;
    }
    return out;
  }
};

class SequenceNormalizer final : public Normalizer {
 public:
  explicit SequenceNormalizer(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  Result<std::string> apply(std::string text) const override {
    for (const auto& part : parts_) {
      OCTET_TRY(text, part->apply(std::move(text)));
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_nfc_normalizer() { return std::make_unique<UnicodeNormalizer>(NormalForm::kNfc); }

Result<std::unique_ptr<Normalizer>> make_normalizer(const Json& json, std::string_view path) {
  OCTET_TRY(const std::string type, read_type(json, path));
  if (type == "NFC") return std::make_unique<UnicodeNormalizer>(NormalForm::kNfc);
  if (type == "NFD") return std::make_unique<UnicodeNormalizer>(NormalForm::kNfd);
  if (type == "NFKC") return std::make_unique<UnicodeNormalizer>(NormalForm::kNfkc);
  if (type == "NFKD") return std::make_unique<UnicodeNormalizer>(NormalForm::kNfkd);
  if (type == "Lowercase") return std::make_unique<LowercaseNormalizer>();
  if (type == "Sequence") {
    OCTET_TRY(const Json* const list, read_list(json, "normalizers", path));
    std::vector<std::unique_ptr<Normalizer>> parts;
    for (const Json& item : *list) {
      OCTET_TRY(auto part, make_normalizer(item, fmt::format("{}.normalizers[{}]", path, parts.size())));
      parts.push_back(std::move(part));
    }
    return std::make_unique<SequenceNormalizer>(std::move(parts));
  }
  return fail(ErrorCode::kUnsupported, "{}.type: \"{}\" is not supported", path, type);
}

}  // namespace octet::text
