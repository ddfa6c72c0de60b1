// Decoders of a tokenizer.json: from the spellings of tokens back to text, as a stream.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/json.h"
#include "octet/text/tokenizer/pre_tokenizer.h"

namespace octet::text {

// Takes tokens, each in one or more parts. All parts are whole characters.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual void part(std::string_view text) = 0;
  virtual void end_token() = 0;
  // No token follows.
  virtual void finish() = 0;
};

// One run of decoding. What it gives out is whole characters of valid UTF-8, but for DecodeMode::kBytes.
class DecoderRun {
 public:
  DecoderRun(DecoderRun&&) noexcept;
  ~DecoderRun();
  // Appends the text that became certain with this token.
  void push(std::string_view token, std::string& out);
  // Appends what is left at the end.
  void finish(std::string& out);

 private:
  friend class Decoder;
  class Output;
  DecoderRun();
  Output* output_;                     // the end of the chain
  std::unique_ptr<TokenSink> stages_;  // owns it
};

// What becomes of byte tokens. As a stream: a character comes out with its last byte, and a maximal part that can never
// become one is one U+FFFD. As a whole, as the reference decodes: a run of byte tokens that is not UTF-8 from end to
// end is one U+FFFD for each. Both are equal wherever such runs are valid. As bytes: just so, whatever they make.
enum class DecodeMode { kStream, kWhole, kBytes };

class Decoder {
 public:
  virtual ~Decoder() = default;
  // A stage in front of `next`.
  virtual std::unique_ptr<TokenSink> before(std::unique_ptr<TokenSink> next, DecodeMode mode) const = 0;
  DecoderRun start(DecodeMode mode) const;
};

// ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, Sequence. Another type is an error that names it.
// path: for messages.
Result<std::unique_ptr<Decoder>> make_decoder(const Json& json, std::string_view path);

// The same without JSON.
std::unique_ptr<Decoder> make_byte_level_decoder();
// Tokens <0x00> to <0xFF> become the bytes they name.
std::unique_ptr<Decoder> make_byte_fallback_decoder();
// All tokens become one: what follows sees the text as a whole.
std::unique_ptr<Decoder> make_fuse_decoder();
// Every occurrence of the pattern in a token becomes the content.
std::unique_ptr<Decoder> make_replace_decoder(std::string pattern, std::string content);
// Text of a token is held back until the token ends. Error: the expression does not compile.
Result<std::unique_ptr<Decoder>> make_regex_replace_decoder(std::string_view regex, std::string content);
// Takes up to `start` and `stop` of this character from the two ends of each token.
std::unique_ptr<Decoder> make_strip_decoder(char32_t content, std::size_t start, std::size_t stop);
// Marks become spaces; in the first token they go, unless the scheme is kNever.
std::unique_ptr<Decoder> make_metaspace_decoder(std::string mark, PrependScheme scheme);
std::unique_ptr<Decoder> make_decoder_sequence(std::vector<std::unique_ptr<Decoder>> parts);
// Without a decoder, tokens are joined with spaces.
std::unique_ptr<Decoder> make_joining_decoder();

}  // namespace octet::text
