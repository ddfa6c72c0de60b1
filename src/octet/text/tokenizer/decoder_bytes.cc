// Decoders whose tokens stand for bytes.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "octet/base/utf8.h"
#include "octet/text/tokenizer/byte_alphabet.h"
#include "octet/text/tokenizer/decoder_stage.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of which whole characters come out as soon as they are there, and U+FFFD for each maximal part that can never
// become one.
class ByteStream {
 public:
  explicit ByteStream(DecodeMode mode) : is_text_(mode != DecodeMode::kBytes) {}
  void add(char byte) { held_ += byte; }
  void add(std::string_view bytes) { held_ += bytes; }
  void give(TokenSink& next) {
    if (!is_text_) return give_all(next);
    std::string text;
    for (;;) {
      const Utf8Prefix prefix = utf8_prefix(held_);
      text.append(held_, 0, prefix.complete);
      held_.erase(0, prefix.complete);
      if (prefix.cut_short || held_.empty() || is_surrogate_start()) break;
      text += kReplacement;
      held_.erase(0, prefix.invalid);
    }
    if (!text.empty()) next.part(text);
  }
  void give_all(TokenSink& next) {
    if (!held_.empty()) next.part(is_text_ ? repair_utf8(held_) : held_);
    held_.clear();
  }

 private:
  // The first two bytes of a surrogate wait for the third, as in Python's incremental decoder.
  bool is_surrogate_start() const {
    return held_.size() == 2 && held_[0] == '\xED' && (static_cast<std::uint8_t>(held_[1]) & 0xE0) == 0xA0;
  }

  bool is_text_;
  std::string held_;  // the start of a character whose end has not come
};

// All tokens become one: their bytes.
class ByteLevel final : public DecoderStage {
 public:
  ByteLevel(std::unique_ptr<TokenSink> next, DecodeMode mode) : DecoderStage(std::move(next)), bytes_(mode) {}
  void part(std::string_view text) override { token_ += text; }
  void end_token() override {
    add_token();
    token_.clear();
    any_ = true;
    bytes_.give(next());
  }
  void finish() override {
    bytes_.give_all(next());
    if (any_) next().end_token();
    next().finish();
  }

 private:
  // A token with characters that stand for no byte is taken as it is written.
  void add_token() {
    std::string bytes;
    for (std::size_t at = 0; at < token_.size();) {
      const CodePoint c = code_point_at(token_, at);
      const auto byte = character_byte(c.value);
      if (!byte) {
        bytes_.add(token_);
        return;
      }
      bytes += static_cast<char>(*byte);
      at += c.length;
    }
    bytes_.add(bytes);
  }

  std::string token_;
  ByteStream bytes_;
  bool any_ = false;
};

std::optional<std::uint8_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char upper = static_cast<char>(c & ~0x20);
  if (upper >= 'A' && upper <= 'F') return upper - 'A' + 10;
  return std::nullopt;
}

// The byte that a token <0xNN> names. As Rust reads numbers, a plus may stand for the first digit.
std::optional<std::uint8_t> named_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto high = token[3] == '+' ? std::optional<std::uint8_t>(0) : hex_digit(token[3]), low = hex_digit(token[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<std::uint8_t>(*high << 4 | *low);
}

// Subclasses say what becomes of a run of byte tokens.
class ByteFallback : public DecoderStage {
 public:
  using DecoderStage::DecoderStage;
  void part(std::string_view text) override {
    if (decided_) {
      next().part(text);
      return;
    }
    token_ += text;
    if (token_.size() > 6 || token_[0] != '<') pass_on();
  }
  void end_token() override {
    if (!decided_) {
      if (const auto byte = named_byte(token_)) {
        add_byte(static_cast<char>(*byte));
        token_.clear();
        return;
      }
      pass_on();
    }
    decided_ = false;
    next().end_token();
  }
  void finish() override {
    end_run();
    next().finish();
  }

 protected:
  virtual void add_byte(char byte) = 0;
  virtual void end_run() = 0;

 private:
  // The token names no byte.
  void pass_on() {
    end_run();
    decided_ = true;
    if (!token_.empty()) next().part(token_);
    token_.clear();
  }

  std::string token_;     // while it may still name a byte
  bool decided_ = false;  // it does not
};

class ByteFallbackStream final : public ByteFallback {
 public:
  ByteFallbackStream(std::unique_ptr<TokenSink> next, DecodeMode mode) : ByteFallback(std::move(next)), bytes_(mode) {}

 protected:
  void add_byte(char byte) override {
    running_ = true;
    bytes_.add(byte);
    bytes_.give(next());
  }
  void end_run() override {
    if (!running_) return;
    bytes_.give_all(next());
    next().end_token();
    running_ = false;
  }

 private:
  ByteStream bytes_;
  bool running_ = false;
};

class ByteFallbackWhole final : public ByteFallback {
 public:
  using ByteFallback::ByteFallback;

 protected:
  void add_byte(char byte) override { run_ += byte; }
  void end_run() override {
    if (run_.empty()) return;
    if (is_valid_utf8(run_)) {
      next().part(run_);
      next().end_token();
    } else {
      for (std::size_t i = 0; i < run_.size(); ++i) {
        next().part(kReplacement);
        next().end_token();
      }
    }
    run_.clear();
  }

 private:
  std::string run_;
};

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder() {
  return decoder_of([](auto next, DecodeMode mode) { return std::make_unique<ByteLevel>(std::move(next), mode); });
}

std::unique_ptr<Decoder> make_byte_fallback_decoder() {
  return decoder_of([](auto next, DecodeMode mode) -> std::unique_ptr<TokenSink> {
    if (mode == DecodeMode::kWhole) return std::make_unique<ByteFallbackWhole>(std::move(next));
    return std::make_unique<ByteFallbackStream>(std::move(next), mode);
  });
}

}  // namespace octet::text
