// Text to token ids and back, exactly as the reference libraries do it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"

namespace octet::formats {
class GgufFile;
}

namespace octet::text {

using TokenId = std::int32_t;

struct EncodeOptions {
  bool add_special = true;    // run the post-processor: BOS, EOS and so on
  bool parse_special = true;  // strings of special tokens in the text become those tokens; false: they are plain text
};

// A part of a rendered prompt: what the template wrote, or what a client supplied. Special tokens are matched in
// template parts only.
struct TextSpan {
  std::size_t begin = 0, end = 0;  // bytes of the rendered text
  bool is_data = false;
};

// One run of decoding, id by id. Everything it gives out is whole characters of valid UTF-8.
class DecodeStream {
 public:
  virtual ~DecodeStream() = default;
  // Appends the text that became certain with this id.
  virtual void push(TokenId id, std::string& out) = 0;
  // Appends what is left at the end: an unfinished character becomes U+FFFD.
  virtual void finish(std::string& out) = 0;
};

// Immutable after loading; all calls are thread-safe.
class Tokenizer {
 public:
  // tokenizer.json as text. An unsupported component is an error that names it.
  static Result<std::unique_ptr<Tokenizer>> from_json(std::string_view json);
  // The vocabulary inside a GGUF file (tokenizer.ggml.*).
  static Result<std::unique_ptr<Tokenizer>> from_gguf(const formats::GgufFile& file);
  // The other files; config is the text of the tokenizer_config.json beside the file, or empty. A SentencePiece model:
  static Result<std::unique_ptr<Tokenizer>> from_sentencepiece(std::string_view bytes, std::string_view config = {});
  // tiktoken's lines of base64 and rank. Error: neither the config nor the vocabulary tells how text is cut.
  static Result<std::unique_ptr<Tokenizer>> from_tiktoken(std::string_view text, std::string_view config = {});
  // Mistral's tekken.json.
  static Result<std::unique_ptr<Tokenizer>> from_tekken(std::string_view json);
  // Any of these, told by its content, or a folder with one: tokenizer.json, else tekken.json, tokenizer.model,
  // tiktoken.model, *.tiktoken, *.gguf. Errors name the file.
  static Result<std::unique_ptr<Tokenizer>> open(const std::filesystem::path& path);

  virtual ~Tokenizer() = default;

  // Token ids of UTF-8 text. Errors: text that is not UTF-8, a pattern that hits its retry limit.
  virtual Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options = {}) const = 0;
  // Token ids of a rendered chat prompt: no special token comes out of a data span. Spans cover the text, in order.
  // Adds no BOS or EOS.
  virtual Result<std::vector<TokenId>> encode_rendered(std::string_view text,
                                                       std::span<const TextSpan> spans) const = 0;

  // The text of all ids at once; invalid bytes become U+FFFD as the reference does. Ids outside the vocabulary give
  // nothing.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special = true) const = 0;

  // The same id by id. The tokenizer must outlive the stream.
  virtual std::unique_ptr<DecodeStream> start_decoding(bool skip_special) const = 0;

  // One past the largest id.
  virtual TokenId vocabulary_size() const = 0;
  // The token as the vocabulary spells it ("Ġthe"), or nothing for an id that has no token.
  virtual std::optional<std::string> token(TokenId id) const = 0;
  // The bytes that the token stands for inside a text: those of all tokens of a text, one behind the other, are that
  // text. A token that no text comes from is given as it is spelled; empty for an id that has no token.
  virtual std::string token_bytes(TokenId id) const = 0;
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  virtual bool is_special(TokenId id) const = 0;
};

// Turns ids into text one at a time. Never gives half a character; the sum of all pushes and flush equals decode() of
// the whole.
class Detokenizer {
 public:
  // The tokenizer must outlive it. context: ids before the stream; their text is not given out but the stream continues
  // it.
  Detokenizer(const Tokenizer& tokenizer, bool skip_special, std::span<const TokenId> context = {});
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;
  ~Detokenizer();

  // The text that became certain with this id; valid UTF-8, often empty.
  std::string push(TokenId id);
  // What is still held back: an unfinished character comes out as U+FFFD.
  std::string flush();

 private:
  std::unique_ptr<DecodeStream> stream_;
};

}  // namespace octet::text
