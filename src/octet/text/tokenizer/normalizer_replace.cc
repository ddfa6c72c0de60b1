#include <utility>

#include "octet/text/tokenizer/normalizer.h"
#include "octet/text/tokenizer/regex.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

class ReplaceText final : public Normalizer {
 public:
  ReplaceText(std::string pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}

  Result<std::string> apply(std::string text) const override {
    if (pattern_.empty()) return between_characters(text);
    std::size_t at = text.find(pattern_);
    if (at == std::string::npos) return text;
    std::string out;
    out.reserve(text.size() + text.size() / 4);
    std::size_t done = 0;
    for (; at != std::string::npos; at = text.find(pattern_, done)) {
      out.append(text, done, at - done);
      out += content_;
      done = at + pattern_.size();
    }
    out.append(text, done);
    return out;
  }

 private:
  std::string between_characters(const std::string& text) const {
    if (text.empty()) return text;
    std::string out = content_;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = code_point_at(text, at).length;
      out.append(text, at, length);
      out += content_;
      at += length;
    }
    return out;
  }

  std::string pattern_, content_;
};

class ReplaceRegex final : public Normalizer {
 public:
  ReplaceRegex(Regex regex, std::string content) : regex_(std::move(regex)), content_(std::move(content)) {}

  Result<std::string> apply(std::string text) const override {
    if (text.empty()) return text;
    std::string out;
    std::size_t done = 0;
    OCTET_TRY_VOID(regex_.find_all(text, [&](std::size_t begin, std::size_t end) {
      out.append(text, done, begin - done);
      out += content_;
      done = end;
    }));
    out.append(text, done);
    return out;
  }

 private:
  Regex regex_;
  std::string content_;
};

}  // namespace

std::unique_ptr<Normalizer> make_replace_normalizer(std::string pattern, std::string content) {
  return std::make_unique<ReplaceText>(std::move(pattern), std::move(content));
}

Result<std::unique_ptr<Normalizer>> make_regex_replace_normalizer(std::string_view regex, std::string content) {
  OCTET_TRY(Regex compiled, Regex::compile(regex));
  return std::make_unique<ReplaceRegex>(std::move(compiled), std::move(content));
}

}  // namespace octet::text
