#include "octet/text/tokenizer/normalizer.h"

#include <utility>
#include <vector>

#include "octet/base/base64.h"
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

Result<std::unique_ptr<Normalizer>> read_replace(const Json& json, std::string_view path) {
  OCTET_TRY(TextPattern pattern, read_pattern(json, path));
  OCTET_TRY(std::string content, read_text(json, "content", path));
  if (!pattern.is_regex) return make_replace_normalizer(std::move(pattern.text), std::move(content));
  auto made = make_regex_replace_normalizer(pattern.text, std::move(content));
  if (!made) return within(fmt::format("{}.pattern", path), std::move(made).error());
  return made;
}

Result<std::unique_ptr<Normalizer>> read_precompiled(const Json& json, std::string_view path) {
  OCTET_TRY(const std::string encoded, read_text(json, "precompiled_charsmap", path));
  const std::string where = fmt::format("{}.precompiled_charsmap", path);
  auto bytes = decode_base64(encoded);
  if (!bytes) return fail(ErrorCode::kInvalid, "{}: is not base64", where);
  auto made = make_precompiled_normalizer(*std::move(bytes));
  if (!made) return within(where, std::move(made).error());
  return made;
}

}  // namespace

std::unique_ptr<Normalizer> make_nfc_normalizer() { return std::make_unique<UnicodeNormalizer>(NormalForm::kNfc); }
std::unique_ptr<Normalizer> make_nfkc_normalizer() { return std::make_unique<UnicodeNormalizer>(NormalForm::kNfkc); }
std::unique_ptr<Normalizer> make_normalizer_sequence(std::vector<std::unique_ptr<Normalizer>> parts) {
  return std::make_unique<SequenceNormalizer>(std::move(parts));
}

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
    return make_normalizer_sequence(std::move(parts));
  }
  if (type == "Strip") {
    OCTET_TRY(const bool left, read_flag(json, "strip_left", true, path));
    OCTET_TRY(const bool right, read_flag(json, "strip_right", true, path));
    return make_strip_normalizer(left, right);
  }
  if (type == "StripAccents") return make_strip_accents_normalizer();
  if (type == "Nmt") return make_nmt_normalizer();
  if (type == "ByteLevel") return make_byte_level_normalizer();
  if (type == "Prepend") {
    OCTET_TRY(std::string prefix, read_text(json, "prepend", path));
    return make_prepend_normalizer(std::move(prefix));
  }
  if (type == "Replace") return read_replace(json, path);
  if (type == "Precompiled") return read_precompiled(json, path);
  return fail(ErrorCode::kUnsupported, "{}.type: \"{}\" is not supported", path, type);
}

}  // namespace octet::text
