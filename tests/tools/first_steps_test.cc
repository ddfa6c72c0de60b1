// What somebody reads who mistypes a first command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/temp_folder.h"

namespace octet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The output of `octet ARGUMENTS`, which must end with this status.
std::string complaint(std::vector<std::string> arguments, int status) {
  arguments.insert(arguments.begin(), OCTET_PROGRAM);
  const auto done = testing::run_child(arguments, 60 * testing::time_scale());
  EXPECT_FALSE(done.timed_out);
  EXPECT_EQ(done.exit_code, status) << done.output;
  return done.output;
}

TEST(FirstSteps, AMistypedCommandIsRecognised) {
  EXPECT_THAT(complaint({"serv"}, 2), HasSubstr("octet: no command 'serv'; did you mean serve?"));
  EXPECT_THAT(complaint({"embroider"}, 2), Not(HasSubstr("did you mean")));
}

TEST(FirstSteps, WithoutAModelTheKindsAreNamed) {
  const std::string text = complaint({"serve"}, 2);
  for (const char* kind : {"MODEL is missing", "folder", "GGUF", "ORG/NAME", "smollm2"}) {
    EXPECT_THAT(text, HasSubstr(kind));
  }
}

TEST(FirstSteps, AFolderOfGgufFilesNamesThem) {
  testing::TempFolder folder;
  const std::string path = folder.path().string();
  EXPECT_THAT(complaint({"serve", path, "--port", "0"}, 1),
              HasSubstr(path + ": a model folder has a config.json, and this one has none\n"));
  folder.write("b.gguf", "");
  folder.write("a.gguf", "");
  EXPECT_THAT(complaint({"serve", path, "--port", "0"}, 1), HasSubstr("serve a file of it: a.gguf, b.gguf\n"));
}

TEST(FirstSteps, APathThatIsNotThereIsNamed) {
  EXPECT_THAT(complaint({"serve", "./absent/", "--port", "0"}, 1), HasSubstr("./absent/: no such folder or file\n"));
}

}  // namespace
}  // namespace octet
