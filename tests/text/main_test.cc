// The main of this test program. With --open FOLDER it is the child of the malformed-file tests: it loads the folder's
// tokenizer.json and encodes a text that backtracking patterns choke on, and ends with 0, or with 1 and the error.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string_view>

#include "octet/base/file.h"
#include "octet/text/tokenizer.h"

namespace {

octet::Result<> open_tokenizer(const std::filesystem::path& folder) {
  const auto path = folder / "tokenizer.json";
  OCTET_TRY(const std::string text, octet::read_file(path, std::size_t{256} << 20));
  auto tokenizer = octet::text::Tokenizer::from_json(text);
  if (!tokenizer) return octet::within(path.string(), std::move(tokenizer).error());
  for (const std::string& input : {std::string(5000, 'a') + "!", std::string("ABC the quick \xE4\xBD\xA0 <bos>")}) {
    const auto ids = (*tokenizer)->encode(input);
    if (!ids) return octet::within(path.string(), ids.error());
    (*tokenizer)->decode(*ids);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--open") {
    const auto opened = open_tokenizer(argv[2]);
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return opened ? 0 : 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
