// Normalizers that look at one character at a time, or at the ends.
#include <optional>
#include <utility>

#include "octet/text/tokenizer/byte_alphabet.h"
#include "octet/text/tokenizer/normalizer.h"
#include "octet/text/tokenizer/reference_classes.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  Result<std::string> apply(std::string text) const override {
    if (!text.empty()) text.insert(0, prefix_);
    return text;
  }

 private:
  std::string prefix_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  Result<std::string> apply(std::string text) const override {
    std::size_t begin = 0, end = text.size();
    while (left_ && begin < end) {
      const CodePoint c = code_point_at(text, begin);
      if (!is_white_space(c.value)) break;
      begin += c.length;
    }
    while (right_ && end > begin) {
      const std::size_t last = previous_code_point(text, end);
      if (!is_white_space(code_point_at(text, last).value)) break;
      end = last;
    }
    text.erase(end);
    text.erase(0, begin);
    return text;
  }

 private:
  bool left_, right_;
};

// Each character becomes map(c), or goes where that is nothing.
template <typename Map>
class MapCharacters final : public Normalizer {
 public:
  explicit MapCharacters(Map map) : map_(std::move(map)) {}
  Result<std::string> apply(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      at += c.length;
      if (const std::optional<char32_t> mapped = map_(c.value)) append_code_point(out, *mapped);
    }
    return out;
  }

 private:
  Map map_;
};

std::optional<char32_t> without_mark(char32_t c) {
  if (is_reference_mark(c)) return std::nullopt;
  return c;
}

std::optional<char32_t> as_nmt_does(char32_t c) {
  const auto in = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  if (in(0x01, 0x08) || c == 0x0B || in(0x0E, 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return std::nullopt;
  const bool space = c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 || in(0x200B, 0x200F) ||
                     c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  return space ? U' ' : c;
}

class SpellBytes final : public Normalizer {
 public:
  Result<std::string> apply(std::string text) const override { return spell_bytes(text); }
};

}  // namespace

std::unique_ptr<Normalizer> make_prepend_normalizer(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}
std::unique_ptr<Normalizer> make_strip_normalizer(bool left, bool right) {
  return std::make_unique<Strip>(left, right);
}
std::unique_ptr<Normalizer> make_strip_accents_normalizer() {
  return std::make_unique<MapCharacters<decltype(&without_mark)>>(&without_mark);
}
std::unique_ptr<Normalizer> make_nmt_normalizer() {
  return std::make_unique<MapCharacters<decltype(&as_nmt_does)>>(&as_nmt_does);
}
std::unique_ptr<Normalizer> make_byte_level_normalizer() { return std::make_unique<SpellBytes>(); }

}  // namespace octet::text
