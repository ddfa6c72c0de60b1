// A tokenizer whose decoding fails in the middle.
#pragma once
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/text/tokenizer.h"
#include "tests/support/byte_tokenizer.h"

namespace octet::testing {

// Bytes, but the text of the token behind `good_tokens` others cannot be made.
class FailingTokenizer final : public text::Tokenizer {
 public:
  // The failure waits for may_fail.
  explicit FailingTokenizer(int good_tokens, std::shared_future<void> may_fail = {})
      : good_tokens_(good_tokens), may_fail_(std::move(may_fail)) {}

  Result<std::vector<text::TokenId>> encode(std::string_view text, const text::EncodeOptions& options) const override {
    return bytes_->encode(text, options);
  }
  Result<std::vector<text::TokenId>> encode_rendered(std::string_view text,
                                                     std::span<const text::TextSpan> spans) const override {
    return bytes_->encode_rendered(text, spans);
  }
  std::string decode(std::span<const text::TokenId> ids, bool skip_special) const override {
    return bytes_->decode(ids, skip_special);
  }
  std::unique_ptr<text::DecodeStream> start_decoding(bool) const override {
    return std::make_unique<Decoding>(good_tokens_, may_fail_);
  }
  text::TokenId vocabulary_size() const override { return bytes_->vocabulary_size(); }
  std::optional<std::string> token(text::TokenId id) const override { return bytes_->token(id); }
  std::string token_bytes(text::TokenId id) const override { return bytes_->token_bytes(id); }
  std::optional<text::TokenId> id_of(std::string_view token) const override { return bytes_->id_of(token); }
  bool is_special(text::TokenId id) const override { return bytes_->is_special(id); }

 private:
  struct Decoding final : text::DecodeStream {
    Decoding(int tokens, std::shared_future<void> gate) : left(tokens), may_fail(std::move(gate)) {}
    void push(text::TokenId id, std::string& out) override {
      if (left-- == 0) {
        if (may_fail.valid()) may_fail.wait_for(std::chrono::seconds(60));
        throw std::runtime_error("no text for this token");
      }
      out += static_cast<char>(id);
    }
    void finish(std::string&) override {}
    int left;
    std::shared_future<void> may_fail;
  };
  std::unique_ptr<text::Tokenizer> bytes_ = make_byte_tokenizer();
  int good_tokens_;
  std::shared_future<void> may_fail_;
};

}  // namespace octet::testing
