// tools/check_includes.py on small trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;
using ::testing::HasSubstr;

namespace {

class CheckIncludes : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "octet_includes_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  // Runs the check; gives its exit status and output.
  std::pair<int, std::string> check() {
    std::string command = "python3 tools/check_includes.py '" + root_.string() + "' 2>&1", output;
    FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    while (std::size_t size = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, size);
    return {WEXITSTATUS(pclose(pipe)), output};
  }

  fs::path root_;
};

TEST_F(CheckIncludes, DownwardsIsFine) {
  write("src/octet/engine/a.h", "#include <vector>\n#include \"octet/base/error.h\"\n#include \"octet/engine/b.h\"\n");
  write("apps/octet/main.cc", "#include \"octet/server/server.h\"\n");
  EXPECT_EQ(check(), std::pair(0, std::string()));
}

TEST_F(CheckIncludes, UpwardsIsNamed) {
  write("src/octet/text/a.cc", "\n  #  include \"octet/engine/request.h\"\n");
  auto [status, output] = check();
  EXPECT_EQ(status, 1);
  EXPECT_EQ(output, "src/octet/text/a.cc:2: room text includes octet/engine/request.h, which stands below it\n");
}

TEST_F(CheckIncludes, RoomsOfOneJobDoNotKnowEachOther) {
  write("src/octet/gateway/a.cc", "#include \"octet/bench/b.h\"\n#include \"octet/server/c.h\"\n");
  auto [status, output] = check();
  EXPECT_EQ(status, 1);
  EXPECT_THAT(output, HasSubstr("gateway/a.cc:1: room gateway includes octet/bench/b.h"));
  EXPECT_THAT(output, Not(HasSubstr("a.cc:2")));
}

TEST_F(CheckIncludes, UnknownRoomsAndRelativeIncludesAreNamed) {
  write("src/octet/cellar/a.cc", "");
  write("src/octet/base/b.h", "#include <fmt/format.h>\n#include \"hwy/highway.h\"\n");
  write("src/octet/base/b.cc", "#include \"b.h\"\n#include \"octet/attic/c.h\"\n");
  auto output = check().second;
  EXPECT_THAT(output, HasSubstr("no room cellar"));
  EXPECT_THAT(output, HasSubstr("base/b.cc:1: \"b.h\" is not written from the source root"));
  EXPECT_THAT(output, HasSubstr("base/b.cc:2: octet/attic/c.h: no room attic"));
  EXPECT_THAT(output, Not(HasSubstr("b.h:")));
}

TEST_F(CheckIncludes, PathsOutsideTheRepositoryAreNamed) {
  write("docs/a.md", std::string("see ..") + "/shared/x\n" + "/ro" + "ot/x\nhttps://example.org/work" + "/x\n");
  auto [status, output] = check();
  EXPECT_EQ(status, 1);
  EXPECT_THAT(output, HasSubstr("docs/a.md:1: names a folder outside the repository"));
  EXPECT_THAT(output, HasSubstr("docs/a.md:2: names a path of one machine"));
  EXPECT_THAT(output, Not(HasSubstr("a.md:3")));
}

}  // namespace
