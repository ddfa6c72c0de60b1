// What a SentencePiece model file holds, as far as tokenizing needs it (sentencepiece_model.proto, version 0.2).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/text/tokenizer.h"

namespace octet::text {

// As numbered in the file; GGUF uses the same numbers.
enum class PieceType : std::uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct SentencePieceFile {
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };

  std::vector<Piece> pieces;  // by id
  bool is_unigram = true;     // else BPE
  bool byte_fallback = false;
  std::string unknown_surface = " \xE2\x81\x87 ";  // what an unknown piece reads as: ⁇ between spaces
  std::string unknown = "<unk>", bos = "<s>", eos = "</s>", pad = "<pad>";
  // The normalizer.
  std::string charsmap;  // precompiled; empty: text is taken as it is
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;

  // The id of a control piece of this text.
  std::optional<TokenId> control(std::string_view text) const;
};

// Errors: bytes that are no such file, a model of words or characters, options that are not supported.
Result<SentencePieceFile> read_sentencepiece_file(std::string_view bytes);

// Checks what every source of pieces has to keep: one unknown piece, byte pieces that are bytes, no text twice, finite
// scores.
Result<> check_pieces(const SentencePieceFile& file);

}  // namespace octet::text
