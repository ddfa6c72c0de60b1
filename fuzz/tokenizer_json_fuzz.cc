// tokenizer.json from a model's folder: it loads or gives one error, and what loads encodes and decodes within its
// rules. Input: the JSON, a NUL byte, a text; without a NUL a fixed text is used.
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
  const std::size_t cut = input.find('\0');
  const auto tokenizer = Tokenizer::from_json(input.substr(0, cut));
  if (!tokenizer) {
    OCTET_CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  const std::string text =
      octet::repair_utf8(cut == std::string_view::npos ? "Hello  the\n w\xC3\xB6rld 123 <bos> <|user|> \xF0\x9F\x98\x80"
                                                       : input.substr(cut + 1, 256));
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
    }
    streamed += detokenizer.flush();
    OCTET_CHECK(streamed == (*tokenizer)->decode(*ids, parse));
    OCTET_CHECK(octet::is_valid_utf8(streamed));
  }
  return 0;
}
