#include "octet/text/tokenizer/sentencepiece_decoder.h"

#include <charconv>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "octet/base/utf8.h"
#include "octet/text/tokenizer/decoder_stage.h"

namespace octet::text {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // ▁
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What the stages of all runs share.
struct Rules {
  std::unordered_map<std::string, PieceType> special;  // pieces that do not read as they are written
  std::string unknown_surface;
  bool strip_first = false;       // a mark at the start goes
  bool strip_until_text = false;  // of every piece until there is text
};

class SentencePieceStage final : public DecoderStage {
 public:
  SentencePieceStage(std::unique_ptr<TokenSink> next, std::shared_ptr<const Rules> rules, DecodeMode mode)
      : DecoderStage(std::move(next)), rules_(std::move(rules)), is_text_(mode != DecodeMode::kBytes) {}

  void part(std::string_view text) override { token_ += text; }
  void end_token() override {
    const auto found = rules_->special.find(token_);
    const PieceType type = found == rules_->special.end() ? PieceType::kNormal : found->second;
    if (type == PieceType::kByte) {
      unsigned int byte = 0;
      std::from_chars(token_.data() + 3, token_.data() + 5, byte, 16);
      held_ += static_cast<char>(byte);
      give_bytes(false);
    } else {
      give_bytes(true);
      if (stripped_ || any_text_) at_start_ = false;
      stripped_ = false;
      if (type == PieceType::kUnknown) give(rules_->unknown_surface);
      if (type != PieceType::kUnknown && type != PieceType::kControl) give(readable(token_));
    }
    token_.clear();
    next().end_token();
  }
  void finish() override {
    give_bytes(true);
    next().finish();
  }

 private:
  std::string readable(std::string_view piece) {
    if (at_start_ && rules_->strip_first && piece.starts_with(kSpaceMark)) {
      piece.remove_prefix(kSpaceMark.size());
      stripped_ = !rules_->strip_until_text;
    }
    std::string out;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t mark = std::min(piece.find(kSpaceMark, at), piece.size());
      out += piece.substr(at, mark - at);
      if (mark < piece.size()) out += ' ';
      at = mark + kSpaceMark.size();
    }
    return out;
  }

  void give(std::string_view text) {
    if (text.empty()) return;
    any_text_ = true;
    next().part(text);
  }

  // Whole characters of the held bytes; with `all`, what is left is no character any more.
  void give_bytes(bool all) {
    std::string out;
    if (!is_text_) out.swap(held_);
    while (!held_.empty()) {
      const Utf8Prefix prefix = utf8_prefix(held_);
      out.append(held_, 0, prefix.complete);
      held_.erase(0, prefix.complete);
      if (held_.empty() || (prefix.cut_short && !all)) break;
      out += kReplacement;
      held_.erase(0, 1);
    }
    give(out);
  }

  std::shared_ptr<const Rules> rules_;
  bool is_text_;
  std::string token_, held_;
  bool at_start_ = true, stripped_ = false, any_text_ = false;
};

}  // namespace

std::unique_ptr<Decoder> make_sentencepiece_decoder(const SentencePieceFile& file) {
  auto rules = std::make_shared<Rules>();
  for (const auto& piece : file.pieces) {
    if (piece.type == PieceType::kUnknown || piece.type == PieceType::kControl || piece.type == PieceType::kByte) {
      rules->special.emplace(piece.text, piece.type);
    }
  }
  rules->unknown_surface = file.unknown_surface;
  rules->strip_first = file.add_dummy_prefix || file.remove_extra_spaces;
  rules->strip_until_text = file.remove_extra_spaces;
  return decoder_of([rules = std::shared_ptr<const Rules>(std::move(rules))](auto next, DecodeMode mode) {
    return std::make_unique<SentencePieceStage>(std::move(next), rules, mode);
  });
}

}  // namespace octet::text
