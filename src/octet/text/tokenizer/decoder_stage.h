// What the stages of a decoder have in common.
#pragma once
#include <memory>
#include <utility>

#include "octet/text/tokenizer/decoder.h"

namespace octet::text {

// A stage that by itself passes everything on.
class DecoderStage : public TokenSink {
 public:
  explicit DecoderStage(std::unique_ptr<TokenSink> next) : next_(std::move(next)) {}
  void part(std::string_view text) override { next_->part(text); }
  void end_token() override { next_->end_token(); }
  void finish() override { next_->finish(); }

 protected:
  TokenSink& next() { return *next_; }

 private:
  std::unique_ptr<TokenSink> next_;
};

// A decoder whose stages are made by make(next, mode).
template <typename Make>
class StageDecoder final : public Decoder {
 public:
  explicit StageDecoder(Make make) : make_(std::move(make)) {}
  std::unique_ptr<TokenSink> before(std::unique_ptr<TokenSink> next, DecodeMode mode) const override {
    return make_(std::move(next), mode);
  }

 private:
  Make make_;
};

template <typename Make>
std::unique_ptr<Decoder> decoder_of(Make make) {
  return std::make_unique<StageDecoder<Make>>(std::move(make));
}

}  // namespace octet::text
