#include "octet/text/tokenizer/pipeline.h"

#include <utility>

#include "octet/base/utf8.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

class PipelineStream final : public DecodeStream {
 public:
  PipelineStream(const PipelineParts& parts, bool skip_special, DecodeMode mode)
      : parts_(parts), skip_special_(skip_special), run_(parts.decoder->start(mode)) {}
  void push(TokenId id, std::string& out) override {
    if (skip_special_ && parts_.added.is_special(id)) return;
    if (const auto token = parts_.vocabulary.token(id)) run_.push(*token, out);
  }
  void finish(std::string& out) override { run_.finish(out); }

 private:
  const PipelineParts& parts_;
  bool skip_special_;
  DecoderRun run_;
};

// Whether normalized text still begins with what the text began with. The reference knows the place in the input of
// every character; here it shows in whether the first character changes anything in front of another.
Result<bool> keeps_start(const Normalizer& normalizer, std::string_view text, std::string_view normalized) {
  const std::string_view first = text.substr(0, code_point_at(text, 0).length);
  if (normalized.starts_with(first)) return true;
  OCTET_TRY(const std::string with, normalizer.apply(std::string(first) + "x"));
  OCTET_TRY(const std::string without, normalizer.apply("x"));
  return with != without;
}

}  // namespace

Result<std::vector<TokenId>> Pipeline::encode(std::string_view text, const EncodeOptions& options) const {
  OCTET_TRY(std::vector<TokenId> ids,
            encode_sections(text, {options.parse_special && parts_.parse_special, std::nullopt}));
  if (options.add_special) parts_.post_processor.apply(ids);
  return ids;
}

Result<std::vector<TokenId>> Pipeline::encode_rendered(std::string_view text, std::span<const TextSpan> spans) const {
  std::size_t covered = 0;
  for (const TextSpan& span : spans) {
    if (span.begin != covered || span.end < span.begin)
      return fail(ErrorCode::kInvalid, "spans do not cover the text in order");
    covered = span.end;
  }
  if (covered != text.size()) return fail(ErrorCode::kInvalid, "spans cover {} of {} bytes", covered, text.size());
  return encode_sections(text, {true, spans});
}

Result<std::vector<TokenId>> Pipeline::encode_sections(std::string_view text,
                                                       const AddedTokens::Special& special) const {
  if (!is_valid_utf8(text)) return fail(ErrorCode::kInvalid, "the text is not UTF-8");
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 4);
  for (const auto& section : parts_.added.split_raw(text, special)) {
    if (section.id) {
      ids.push_back(*section.id);
    } else {
      const std::string_view part = text.substr(section.begin, section.end - section.begin);
      OCTET_TRY_VOID(encode_plain(part, section.begin == 0, special, ids));
    }
  }
  return ids;
}

Result<> Pipeline::encode_plain(std::string_view text, bool at_start, const AddedTokens::Special& special,
                                std::vector<TokenId>& ids) const {
  std::string normalized(text);
  if (parts_.normalizer != nullptr) {
    OCTET_TRY(normalized, parts_.normalizer->apply(std::move(normalized)));
    if (at_start) {
      OCTET_TRY(at_start, keeps_start(*parts_.normalizer, text, normalized));
    }
  }
  for (const auto& section : parts_.added.split_normalized(normalized, special)) {
    if (section.id) {
      ids.push_back(*section.id);
      continue;
    }
    Pieces pieces;
    pieces.text = normalized.substr(section.begin, section.end - section.begin);
    pieces.at_start = at_start && section.begin == 0;
    pieces.ranges.push_back({0, pieces.text.size()});
    if (parts_.pre_tokenizer != nullptr) OCTET_TRY_VOID(parts_.pre_tokenizer->apply(pieces));
    OCTET_TRY_VOID(parts_.model->encode(pieces, ids));
  }
  return {};
}

std::string Pipeline::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string text;
  PipelineStream stream(parts_, skip_special, DecodeMode::kWhole);
  for (const TokenId id : ids) stream.push(id, text);
  stream.finish(text);
  return text;
}

std::unique_ptr<DecodeStream> Pipeline::start_decoding(bool skip_special) const {
  return std::make_unique<PipelineStream>(parts_, skip_special, DecodeMode::kStream);
}

std::optional<std::string> Pipeline::token(TokenId id) const {
  const auto found = parts_.vocabulary.token(id);
  if (!found) return std::nullopt;
  return std::string(*found);
}

std::string Pipeline::token_bytes(TokenId id) const {
  const auto token = parts_.vocabulary.token(id);
  if (!token) return {};
  // Behind another token, since some decoders take a space from the first.
  constexpr std::string_view kBefore = "a";
  std::string bytes;
  DecoderRun run = parts_.decoder->start(DecodeMode::kBytes);
  run.push(kBefore, bytes);
  run.push(*token, bytes);
  run.finish(bytes);
  if (bytes.starts_with(kBefore)) bytes.erase(0, kBefore.size());
  return bytes.empty() ? std::string(*token) : bytes;
}

}  // namespace octet::text
