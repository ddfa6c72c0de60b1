// Decoders of a tokenizer.json: from the spellings of tokens back to text, as a stream.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/json.h"

namespace octet::text {

// One run of decoding. What it gives out is whole characters of valid UTF-8.
class DecoderRun {
 public:
  virtual ~DecoderRun() = default;
  // Appends the text that became certain with this token.
  virtual void push(std::string_view token, std::string& out) = 0;
  // Appends what is left at the end.
  virtual void finish(std::string& out) = 0;
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::unique_ptr<DecoderRun> start() const = 0;
};

// ByteLevel, Sequence of one. Another type is an error that names it. path: for messages.
Result<std::unique_ptr<Decoder>> make_decoder(const Json& json, std::string_view path);
std::unique_ptr<Decoder> make_byte_level_decoder();
// Without a decoder, tokens are joined with spaces.
std::unique_ptr<Decoder> make_joining_decoder();

}  // namespace octet::text
