#include "octet/text/tokenizer/decoder.h"

#include <cstdint>
#include <utility>

#include "octet/base/utf8.h"
#include "octet/text/tokenizer/byte_alphabet.h"
#include "octet/text/tokenizer/json_reader.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

class ByteLevelRun final : public DecoderRun {
 public:
  void push(std::string_view token, std::string& out) override {
    append_bytes(token);
    for (;;) {
      const Utf8Prefix prefix = utf8_prefix(held_);
      out.append(held_, 0, prefix.complete);
      held_.erase(0, prefix.complete);
      if (prefix.cut_short || held_.empty() || is_surrogate_start()) return;
      out += kReplacement;
      held_.erase(0, prefix.invalid);
    }
  }
  void finish(std::string& out) override {
    out += repair_utf8(held_);
    held_.clear();
  }

 private:
  // The first two bytes of a surrogate wait for the third, as in Python's incremental decoder.
  bool is_surrogate_start() const {
    return held_.size() == 2 && held_[0] == '\xED' && (static_cast<std::uint8_t>(held_[1]) & 0xE0) == 0xA0;
  }

  // A token with characters that stand for no byte is taken as it is written.
  void append_bytes(std::string_view token) {
    const std::size_t before = held_.size();
    for (std::size_t at = 0; at < token.size();) {
      const CodePoint c = code_point_at(token, at);
      const auto byte = character_byte(c.value);
      if (!byte) {
        held_.resize(before);
        held_ += token;
        return;
      }
      held_ += static_cast<char>(*byte);
      at += c.length;
    }
  }

  std::string held_;  // the start of a character whose end has not come
};

class JoiningRun final : public DecoderRun {
 public:
  void push(std::string_view token, std::string& out) override {
    if (std::exchange(started_, true)) out += ' ';
    out += token;
  }
  void finish(std::string&) override {}

 private:
  bool started_ = false;
};

template <typename Run>
class SimpleDecoder final : public Decoder {
 public:
  std::unique_ptr<DecoderRun> start() const override { return std::make_unique<Run>(); }
};

}  // namespace

std::unique_ptr<Decoder> make_byte_level_decoder() { return std::make_unique<SimpleDecoder<ByteLevelRun>>(); }
std::unique_ptr<Decoder> make_joining_decoder() { return std::make_unique<SimpleDecoder<JoiningRun>>(); }

Result<std::unique_ptr<Decoder>> make_decoder(const Json& json, std::string_view path) {
  OCTET_TRY(const std::string type, read_type(json, path));
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "Sequence") {
    OCTET_TRY(const Json* const list, read_list(json, "decoders", path));
    if (list->size() == 1) return make_decoder((*list)[0], fmt::format("{}.decoders[0]", path));
    return fail(ErrorCode::kUnsupported, "{}.decoders: a sequence of {} decoders is not supported", path, list->size());
  }
  return fail(ErrorCode::kUnsupported, "{}.type: \"{}\" is not supported", path, type);
}

}  // namespace octet::text
