// tokenizer.model from a model's folder: it loads or gives one error, and what loads encodes and decodes within its
// rules.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/check.h"
#include "octet/base/utf8.h"
#include "octet/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octet::text;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::from_sentencepiece(input);
  if (!tokenizer) {
    OCTET_CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  const std::string text = "Hello  the\n w\xC3\xB6rld 123 <s> <tool> \xF0\x9F\x98\x80\xEF\xAC\x81 ";
  const std::vector<TextSpan> spans = {{0, text.size() / 2, false}, {text.size() / 2, text.size(), true}};
  const auto rendered = (*tokenizer)->encode_rendered(text, spans);
  for (const bool parse : {false, true}) {
    const auto ids = (*tokenizer)->encode(text, {.add_special = true, .parse_special = parse});
    if (!ids) continue;
    std::string streamed;
    Detokenizer detokenizer(**tokenizer, parse);
    for (const TokenId id : *ids) {
      OCTET_CHECK(id >= 0 && id < (*tokenizer)->vocabulary_size());
      streamed += detokenizer.push(id);
      OCTET_CHECK(octet::is_valid_utf8(streamed));
    }
    streamed += detokenizer.flush();
    OCTET_CHECK(octet::is_valid_utf8((*tokenizer)->decode(*ids, parse)));
  }
  return 0;
}
