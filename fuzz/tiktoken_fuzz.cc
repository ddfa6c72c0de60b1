// tekken.json, and a tiktoken file with its config: they load or give one error, and what loads gives a text back.
// Input: a tekken.json, which begins with a brace; or a config, a NUL byte, and lines that are added to a vocabulary of
// all bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/check.h"
#include "octet/base/utf8.h"
#include "octet/text/tokenizer.h"

namespace {

std::string all_bytes() {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (unsigned int byte = 0; byte < 256; ++byte) {
    text += kDigits[byte >> 2];
    text += kDigits[(byte & 3) << 4];
    text += "== " + std::to_string(byte) + "\n";
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace octet::text;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  const auto tokenizer =
      cut == std::string_view::npos
          ? Tokenizer::from_tekken(input)
          : Tokenizer::from_tiktoken(all_bytes() + std::string(input.substr(cut + 1)), input.substr(0, cut));
  if (!tokenizer) {
    OCTET_CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  const std::string text = "Hello  the\n w\xC3\xB6rld 123 <s> [INST] \xF0\x9F\x98\x80 abcabc";
  const auto plain = (*tokenizer)->encode(text, {.add_special = false, .parse_special = false});
  if (!plain) return 0;
  for (const TokenId id : *plain) OCTET_CHECK(id >= 0 && id < (*tokenizer)->vocabulary_size());
  OCTET_CHECK(octet::is_valid_utf8((*tokenizer)->decode(*plain, false)));
  const std::vector<TextSpan> spans = {{0, text.size() / 2, false}, {text.size() / 2, text.size(), true}};
  (void)(*tokenizer)->encode_rendered(text, spans);
  return 0;
}
