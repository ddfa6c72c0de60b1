#include <utility>

#include "octet/text/tokenizer.h"

namespace octet::text {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special, std::span<const TokenId> context)
    : stream_(tokenizer.start_decoding(skip_special)) {
  std::string before;
  for (const TokenId id : context) {
    stream_->push(id, before);
    before.clear();
  }
}

Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;
Detokenizer& Detokenizer::operator=(Detokenizer&&) noexcept = default;
Detokenizer::~Detokenizer() = default;

std::string Detokenizer::push(TokenId id) {
  std::string out;
  stream_->push(id, out);
  return out;
}

std::string Detokenizer::flush() {
  std::string out;
  stream_->finish(out);
  return out;
}

}  // namespace octet::text
