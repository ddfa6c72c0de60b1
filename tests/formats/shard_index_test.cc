// LOAD-04: index files, on copies of a sharded golden checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "octet/formats/checkpoint.h"
#include "tests/formats/decoder_weights.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temp_folder.h"

namespace octet::formats {
namespace {

namespace fs = std::filesystem;
using octet::testing::safetensors_bytes;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kShard1 = "model-00001-of-00002.safetensors";
constexpr const char* kShard2 = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kNorm = "model.norm.weight";

class LOAD04 : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = temp_.path() / "modèle 模型 (v1)" / "w+x%20y";
    fs::create_directories(model_);
    for (const auto& item : fs::directory_iterator(std::string(OCTET_TEST_DATA) + "/models/llama-sharded-v5config")) {
      fs::copy(item.path(), model_);
    }
    index_ = parse_json(read_file(model_ / kIndex, 1 << 20).value()).value();
  }

  // Opens the checkpoint and asks for every weight; the error, or "".
  std::string error() const {
    const auto opened = Checkpoint::open(model_);
    if (!opened) return opened.error().message;
    const auto complete = octet::testing::require_decoder_weights(**opened);
    return complete ? "" : complete.error().message;
  }
  std::string error_with_index(const Json& index) const {
    temp_.write(model_ / kIndex, dump_json(index));
    return error();
  }
  std::string error_with_shard(const Json& shard) const {
    Json index = index_;
    index["weight_map"][kNorm] = shard;
    return error_with_index(index);
  }

  octet::testing::TempFolder temp_;
  fs::path model_;
  Json index_;
};

TEST_F(LOAD04, AValidIndexLoads) { EXPECT_EQ(error(), ""); }

TEST_F(LOAD04, MissingShardsAreListed) {
  fs::remove(model_ / kShard1);
  fs::remove(model_ / kShard2);
  EXPECT_THAT(error(), AllOf(HasSubstr(kIndex), HasSubstr(kShard1), HasSubstr(kShard2)));
}

TEST_F(LOAD04, MissingTensorsAreListed) {
  Json index = index_;
  for (int i = 0; i < 30; ++i) index["weight_map"][fmt::format("ghost.{:02}", i)] = kShard1;
  EXPECT_THAT(error_with_index(index), AllOf(HasSubstr("ghost.00"), HasSubstr("ghost.09"), HasSubstr("and 20 more")));
}

TEST_F(LOAD04, PathsThatLeaveTheFolderAreRefused) {
  for (const char* shard :
       {"../../x.safetensors", "/etc/passwd", "x/../../y.safetensors", "sub/x.safetensors", ".", "..", ""}) {
    EXPECT_THAT(error_with_shard(shard), AllOf(HasSubstr(kIndex), HasSubstr(kNorm), HasSubstr(shard)));
  }
  EXPECT_THAT(error_with_shard(std::string("a\0b", 3)), HasSubstr(kNorm));
  EXPECT_THAT(error_with_shard(2), HasSubstr(kNorm));
}

TEST_F(LOAD04, LinksToBlobsLoad) {
  fs::create_directories(model_ / "../blobs");
  fs::rename(model_ / kShard2, model_ / "../blobs/abc");
  fs::create_symlink("../blobs/abc", model_ / kShard2);
  EXPECT_EQ(error(), "");
}

TEST_F(LOAD04, WhatIsNoFileIsRefusedWithoutBlocking) {
  fs::remove(model_ / kShard2);
  ASSERT_EQ(::mkfifo((model_ / kShard2).c_str(), 0600), 0);
  EXPECT_THAT(error(), HasSubstr(kShard2));
  fs::remove(model_ / kShard2);
  fs::create_directory(model_ / kShard2);
  EXPECT_THAT(error(), HasSubstr(kShard2));
}

TEST_F(LOAD04, ATensorInAnotherShardNamesBoth) {
  const std::string holder = index_["weight_map"][kNorm];
  const std::string other = holder == kShard1 ? kShard2 : kShard1;
  EXPECT_THAT(error_with_shard(other), AllOf(HasSubstr(kNorm), HasSubstr(kShard1), HasSubstr(kShard2)));
}

TEST_F(LOAD04, ATensorThatTheIndexLeavesOutIsStillRead) {
  Json index = index_;
  index["weight_map"].erase(kNorm);
  EXPECT_EQ(error_with_index(index), "");
}

TEST_F(LOAD04, ATensorInTwoShardsNamesBoth) {
  temp_.write(model_ / "model-00003.safetensors", safetensors_bytes({{kNorm, "BF16", {96}, std::string(192, 'x')}}));
  Json index = index_;
  index["weight_map"]["extra"] = "model-00003.safetensors";
  EXPECT_THAT(error_with_index(index),
              AllOf(HasSubstr(kNorm), HasSubstr("model-00003.safetensors"), HasSubstr("-of-00002")));
}

TEST_F(LOAD04, AnEmptyMapIsRefused) {
  EXPECT_THAT(error_with_index({{"weight_map", Json::object()}}), AllOf(HasSubstr(kIndex), HasSubstr("weight_map")));
  EXPECT_THAT(error_with_index({{"metadata", Json::object()}}), HasSubstr("weight_map"));
  EXPECT_THAT(error_with_index(Json::array()), HasSubstr("weight_map"));
}

TEST_F(LOAD04, TheIndexWinsOverASingleFile) {
  temp_.write(model_ / "model.safetensors", "not a safetensors file");
  EXPECT_EQ(error(), "");
}

TEST_F(LOAD04, AWrongTotalSizeIsNoError) {
  Json index = index_;
  index["metadata"]["total_size"] = 1;
  EXPECT_EQ(error_with_index(index), "");
}

}  // namespace
}  // namespace octet::formats
