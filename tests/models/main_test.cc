// The main of this test program. With --models-page it prints docs/models.md.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "tests/support/models_page.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--models-page") {
    std::fputs(octet::testing::models_page().c_str(), stdout);
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
