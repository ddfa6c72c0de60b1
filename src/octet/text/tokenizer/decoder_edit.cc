// Decoders that change the text of tokens.
#include <algorithm>
#include <memory>

#include "octet/text/tokenizer/decoder_stage.h"
#include "octet/text/tokenizer/normalizer.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

// A pattern to search a stream for (Knuth, Morris, Pratt 1977).
struct Pattern {
  explicit Pattern(std::string pattern) : text(std::move(pattern)), border(text.size() + 1, 0) {
    for (std::size_t i = 1, length = 0; i < text.size(); ++i) {
      while (length > 0 && text[i] != text[length]) length = border[length];
      if (text[i] == text[length]) ++length;
      border[i + 1] = length;
    }
  }
  std::string text;
  std::vector<std::size_t> border;  // by length of a prefix: that of its longest proper prefix that also ends it
};

class ReplaceText final : public DecoderStage {
 public:
  ReplaceText(std::unique_ptr<TokenSink> next, const Pattern& pattern, const std::string& content)
      : DecoderStage(std::move(next)), pattern_(pattern), content_(content) {}

  void part(std::string_view text) override {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      if (matched_ == 0) {
        const std::size_t begin = std::min(text.find(pattern_.text[0], at), text.size());
        out += text.substr(at, begin - at);
        if (begin == text.size()) break;
        at = begin;
      }
      step(text[at++], out);
    }
    if (!out.empty()) next().part(out);
  }
  void end_token() override {
    if (matched_ > 0) next().part(std::string_view(pattern_.text).substr(0, matched_));
    matched_ = 0;
    next().end_token();
  }

 private:
  // What is held back is always the first matched_ bytes of the pattern.
  void step(char byte, std::string& out) {
    while (matched_ > 0 && pattern_.text[matched_] != byte) {
      const std::size_t kept = pattern_.border[matched_];
      out.append(pattern_.text, 0, matched_ - kept);
      matched_ = kept;
    }
    if (pattern_.text[matched_] != byte) {
      out += byte;
    } else if (++matched_ == pattern_.text.size()) {
      out += content_;
      matched_ = 0;
    }
  }

  const Pattern& pattern_;
  const std::string& content_;
  std::size_t matched_ = 0;
};

// Each token goes through a normalizer once it is whole. One that fails leaves it as it is.
class ReplaceWhole final : public DecoderStage {
 public:
  ReplaceWhole(std::unique_ptr<TokenSink> next, const Normalizer& replace)
      : DecoderStage(std::move(next)), replace_(replace) {}
  void part(std::string_view text) override { token_ += text; }
  void end_token() override {
    const auto replaced = replace_.apply(token_);
    const std::string& text = replaced ? *replaced : token_;
    if (!text.empty()) next().part(text);
    token_.clear();
    next().end_token();
  }

 private:
  const Normalizer& replace_;
  std::string token_;
};

class Strip final : public DecoderStage {
 public:
  Strip(std::unique_ptr<TokenSink> next, char32_t content, std::size_t start, std::size_t stop)
      : DecoderStage(std::move(next)), start_(start), stop_(stop) {
    append_code_point(content_, content);
  }

  void part(std::string_view text) override {
    while (at_start_ && taken_ < start_ && text.starts_with(content_)) {
      text.remove_prefix(content_.size());
      ++taken_;
    }
    if (text.empty()) return;
    at_start_ = false;
    std::size_t ending = 0;
    std::string_view rest = text;
    while (ending < stop_ && rest.ends_with(content_)) {
      rest.remove_suffix(content_.size());
      ++ending;
    }
    // All of it may be the end of a longer run, of which no more than stop_ is held back.
    const std::size_t held = rest.empty() ? std::min(stop_, held_ + ending) : ending;
    give_contents(rest.empty() ? held_ + ending - held : held_);
    if (!rest.empty()) next().part(rest);
    held_ = held;
  }
  void end_token() override {
    at_start_ = true;
    taken_ = held_ = 0;
    next().end_token();
  }

 private:
  void give_contents(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += content_;
    if (!text.empty()) next().part(text);
  }

  std::string content_;
  std::size_t start_, stop_;
  bool at_start_ = true;   // of the token: nothing but taken characters came
  std::size_t taken_ = 0;  // characters taken from its start
  std::size_t held_ = 0;   // characters that may be its end
};

class Metaspace final : public DecoderStage {
 public:
  Metaspace(std::unique_ptr<TokenSink> next, const std::string& mark, bool keep_first)
      : DecoderStage(std::move(next)), mark_(mark), first_(!keep_first) {}
  void part(std::string_view text) override {
    std::string out;
    for (std::size_t at = 0;;) {
      const std::size_t mark = text.find(mark_, at);
      if (mark == std::string_view::npos) {
        out += text.substr(at);
        break;
      }
      out += text.substr(at, mark - at);
      if (!first_) out += ' ';
      at = mark + mark_.size();
    }
    if (!out.empty()) next().part(out);
  }
  void end_token() override {
    first_ = false;
    next().end_token();
  }

 private:
  const std::string& mark_;
  bool first_;
};

}  // namespace

std::unique_ptr<Decoder> make_replace_decoder(std::string pattern, std::string content) {
  if (pattern.empty()) {
    return decoder_of([replace = std::shared_ptr(make_replace_normalizer("", std::move(content)))](
                          auto next, DecodeMode) { return std::make_unique<ReplaceWhole>(std::move(next), *replace); });
  }
  return decoder_of([pattern = Pattern(std::move(pattern)), content = std::move(content)](auto next, DecodeMode) {
    return std::make_unique<ReplaceText>(std::move(next), pattern, content);
  });
}

Result<std::unique_ptr<Decoder>> make_regex_replace_decoder(std::string_view regex, std::string content) {
  OCTET_TRY(std::shared_ptr<Normalizer> replace, make_regex_replace_normalizer(regex, std::move(content)));
  return decoder_of([replace = std::move(replace)](auto next, DecodeMode) {
    return std::make_unique<ReplaceWhole>(std::move(next), *replace);
  });
}

std::unique_ptr<Decoder> make_strip_decoder(char32_t content, std::size_t start, std::size_t stop) {
  return decoder_of(
      [=](auto next, DecodeMode) { return std::make_unique<Strip>(std::move(next), content, start, stop); });
}

std::unique_ptr<Decoder> make_metaspace_decoder(std::string mark, PrependScheme scheme) {
  return decoder_of([mark = std::move(mark), keep = scheme == PrependScheme::kNever](auto next, DecodeMode) {
    return std::make_unique<Metaspace>(std::move(next), mark, keep);
  });
}

}  // namespace octet::text
