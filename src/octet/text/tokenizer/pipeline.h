// A tokenizer made of the parts that a tokenizer.json names.
#pragma once
#include <memory>
#include <vector>

#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer/added_tokens.h"
#include "octet/text/tokenizer/decoder.h"
#include "octet/text/tokenizer/model.h"
#include "octet/text/tokenizer/normalizer.h"
#include "octet/text/tokenizer/post_processor.h"
#include "octet/text/tokenizer/pre_tokenizer.h"
#include "octet/text/tokenizer/vocabulary.h"

namespace octet::text {

struct PipelineParts {
  Vocabulary vocabulary;  // added tokens among them
  AddedTokens added;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<Model> model;
  PostProcessor post_processor;
  std::unique_ptr<Decoder> decoder;
  // false: special tokens are found in template spans alone, whatever a caller asks for.
  bool parse_special = true;
};

class Pipeline final : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts) : parts_(std::move(parts)) {}

  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const override;
  Result<std::vector<TokenId>> encode_rendered(std::string_view text, std::span<const TextSpan> spans) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  std::unique_ptr<DecodeStream> start_decoding(bool skip_special) const override;
  TokenId vocabulary_size() const override { return parts_.vocabulary.size(); }
  std::optional<std::string> token(TokenId id) const override;
  std::string token_bytes(TokenId id) const override;
  std::optional<TokenId> id_of(std::string_view token) const override { return parts_.vocabulary.find(token); }
  bool is_special(TokenId id) const override { return parts_.added.is_special(id); }

 private:
  Result<std::vector<TokenId>> encode_sections(std::string_view text, const AddedTokens::Special& special) const;
  Result<> encode_plain(std::string_view text, bool at_start, const AddedTokens::Special& special,
                        std::vector<TokenId>& ids) const;

  PipelineParts parts_;
};

}  // namespace octet::text
