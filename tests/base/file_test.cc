#include "octet/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace octet {
namespace {

class File : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("octet_file_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(File, MapsAndReadsTheSameBytes) {
  const auto path = folder_ / "modèle 模型 (v1) w+x%20y";
  std::ofstream(path) << "eight by";
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(mapped->bytes().size(), 8u);
  EXPECT_EQ(read_file(path, 100).value(), "eight by");
  EXPECT_EQ(read_file(path, 7).error().code, ErrorCode::kExhausted);
}

TEST_F(File, RefusesWhatIsNoRegularFileAtOnce) {
  const auto fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink(folder_ / "loop", folder_ / "loop");
  for (const auto& path : {fifo, folder_, folder_ / "loop", folder_ / "missing", std::filesystem::path("/dev/zero")}) {
    auto mapped = MappedFile::open(path);
    ASSERT_FALSE(mapped);
    EXPECT_NE(mapped.error().message.find(path.string()), std::string::npos);
  }
}

}  // namespace
}  // namespace octet
