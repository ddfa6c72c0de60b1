#include "octet/text/tokenizer/sentencepiece_file.h"

#include <array>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "octet/base/utf8.h"
#include "octet/text/tokenizer/protobuf_reader.h"

namespace octet::text {
namespace {

using Field = ProtobufReader::Field;

constexpr std::size_t kMostPieces = std::size_t{1} << 22;

// Calls use(field) for every field of a message; the first error ends it.
template <typename Use>
Result<> each_field(std::string_view bytes, const Use& use) {
  ProtobufReader reader(bytes);
  for (;;) {
    OCTET_TRY(const auto field, reader.next());
    if (!field) return {};
    OCTET_TRY_VOID(use(*field));
  }
}

Result<SentencePieceFile::Piece> read_piece(std::string_view bytes) {
  SentencePieceFile::Piece piece;
  OCTET_TRY_VOID(each_field(bytes, [&](const Field& field) -> Result<> {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = field.number32();
    if (field.number != 3) return {};
    if (field.type != 0 || field.integer < 1 || field.integer > 6) {
      return fail(ErrorCode::kInvalid, "type {} is not one of 1 to 6", field.integer);
    }
    piece.type = static_cast<PieceType>(field.integer);
    return {};
  }));
  return piece;
}

Result<> read_trainer(std::string_view bytes, SentencePieceFile& file) {
  return each_field(bytes, [&](const Field& field) -> Result<> {
    switch (field.number) {
      case 3:
        if (field.int32() != 1 && field.int32() != 2) {
          return fail(ErrorCode::kUnsupported,
                      "trainer_spec.model_type: {}: only unigram (1) and BPE (2) are supported", field.int32());
        }
        file.is_unigram = field.int32() == 1;
        break;
      case 24:
        if (field.boolean()) {
          return fail(ErrorCode::kUnsupported, "trainer_spec.treat_whitespace_as_suffix: is not supported");
        }
        break;
      case 35:
        file.byte_fallback = field.boolean();
        break;
      case 44:
        file.unknown_surface = field.bytes;
        break;
      case 45:
        file.unknown = field.bytes;
        break;
      case 46:
        file.bos = field.bytes;
        break;
      case 47:
        file.eos = field.bytes;
        break;
      case 48:
        file.pad = field.bytes;
        break;
      default:
        break;
    }
    return {};
  });
}

Result<> read_normalizer(std::string_view bytes, SentencePieceFile& file) {
  return each_field(bytes, [&](const Field& field) -> Result<> {
    if (field.number == 2) file.charsmap = field.bytes;
    if (field.number == 3) file.add_dummy_prefix = field.boolean();
    if (field.number == 4) file.remove_extra_spaces = field.boolean();
    if (field.number == 5) file.escape_spaces = field.boolean();
    return {};
  });
}

Result<> read_denormalizer(std::string_view bytes) {
  return each_field(bytes, [](const Field& field) -> Result<> {
    if (field.number != 2 || field.bytes.empty()) return {};
    return fail(ErrorCode::kUnsupported, "denormalizer_spec.precompiled_charsmap: is not supported");
  });
}

bool is_byte_piece(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && is_digit(text[3]) && is_digit(text[4]);
}

}  // namespace

std::optional<TokenId> SentencePieceFile::control(std::string_view text) const {
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type == PieceType::kControl && pieces[id].text == text) return static_cast<TokenId>(id);
  }
  return std::nullopt;
}

Result<SentencePieceFile> read_sentencepiece_file(std::string_view bytes) {
  SentencePieceFile file;
  OCTET_TRY_VOID(each_field(bytes, [&](const Field& field) -> Result<> {
    if (field.number >= 1 && field.number <= 5 && field.number != 4 && field.type != 2) {
      return fail(ErrorCode::kInvalid, "field {} is no message", field.number);
    }
    if (field.number == 1) {
      if (file.pieces.size() == kMostPieces) return fail(ErrorCode::kInvalid, "more than {} pieces", kMostPieces);
      auto piece = read_piece(field.bytes);
      if (!piece) return within(fmt::format("piece {}", file.pieces.size()), std::move(piece).error());
      file.pieces.push_back(*std::move(piece));
    }
    if (field.number == 2) return read_trainer(field.bytes, file);
    if (field.number == 3) return read_normalizer(field.bytes, file);
    if (field.number == 5) return read_denormalizer(field.bytes);
    return {};
  }));
  for (std::string* text : {&file.unknown_surface, &file.unknown, &file.bos, &file.eos, &file.pad}) {
    if (!is_valid_utf8(*text)) return fail(ErrorCode::kInvalid, "trainer_spec: a piece's name is not UTF-8");
  }
  OCTET_TRY_VOID(check_pieces(file));
  return file;
}

Result<> check_pieces(const SentencePieceFile& file) {
  if (file.pieces.empty()) return fail(ErrorCode::kInvalid, "holds no pieces");
  std::unordered_set<std::string_view> seen;
  seen.reserve(file.pieces.size());
  std::size_t unknown = 0, bytes = 0;
  for (std::size_t id = 0; id < file.pieces.size(); ++id) {
    const auto& piece = file.pieces[id];
    if (piece.text.empty()) return fail(ErrorCode::kInvalid, "piece {} is empty", id);
    if (!is_valid_utf8(piece.text)) return fail(ErrorCode::kInvalid, "piece {} is not UTF-8", id);
    if (!std::isfinite(piece.score)) return fail(ErrorCode::kInvalid, "piece {}: the score is not finite", id);
    if (!seen.insert(piece.text).second) {
      return fail(ErrorCode::kInvalid, "piece {} (\"{}\") is there twice", id, piece.text.substr(0, 100));
    }
    if (piece.type == PieceType::kUnknown) ++unknown;
    if (piece.type != PieceType::kByte) continue;
    ++bytes;
    if (!is_byte_piece(piece.text)) {
      return fail(ErrorCode::kInvalid, "piece {} (\"{}\") is no byte", id, piece.text.substr(0, 100));
    }
  }
  if (unknown != 1) return fail(ErrorCode::kInvalid, "{} unknown pieces, not one", unknown);
  if (file.byte_fallback && bytes != 256) return fail(ErrorCode::kInvalid, "{} byte pieces, not 256", bytes);
  return {};
}

}  // namespace octet::text
