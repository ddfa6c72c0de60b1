// The main of this test program. With --open PATH it is the child of the malformed-file tests: it opens the checkpoint,
// asks for every weight of the model, and ends with 0, or with 1 and the error on standard error.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "octet/formats/checkpoint.h"
#include "tests/formats/decoder_weights.h"

namespace {

octet::Result<> open_checkpoint(const char* path) {
  OCTET_TRY(const auto checkpoint, octet::formats::Checkpoint::open(path));
  return octet::testing::require_decoder_weights(*checkpoint);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--open") {
    const auto opened = open_checkpoint(argv[2]);
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    return opened ? 0 : 1;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
