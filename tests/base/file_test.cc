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

TEST_F(File, ReadsThatFailNameTheFile) {
  const auto path = folder_ / "weights";
  std::ofstream(path) << std::string(100'000, 'x');
  auto mapped = MappedFile::open(path);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_TRUE(mapped->read(mapped->bytes()).has_value());
  EXPECT_TRUE(mapped->read(mapped->bytes().subspan(50'001, 7)).has_value());
  EXPECT_TRUE(mapped->read({}).has_value());
  std::filesystem::resize_file(path, 5000);
  EXPECT_TRUE(mapped->read(mapped->bytes().first(5000)).has_value());
  const auto failed = mapped->read(mapped->bytes().subspan(60'000, 1000));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::kIo);
  EXPECT_NE(failed.error().message.find(path.string() + ": reading 1000 bytes at byte 60000"), std::string::npos)
      << failed.error().message;
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
