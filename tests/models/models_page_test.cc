// docs/models.md says what there is, and the lists that it is made from leave nothing out.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>

#include "octet/ops/backend.h"
#include "tests/support/golden_lists.h"
#include "tests/support/model_driver.h"
#include "tests/support/models_page.h"

namespace octet::models {
namespace {

TEST(ModelsPage, IsWhatTheRegistryAndTheTestsSay) {
  std::stringstream written;
  written << std::ifstream(std::string(OCTET_TEST_DATA) + "/../../docs/models.md").rdbuf();
  EXPECT_TRUE(written.str() == testing::models_page()) << "run: build/octet_models_test --models-page > docs/models.md";
}

std::set<std::string> listed(std::initializer_list<std::span<const char* const>> lists) {
  std::set<std::string> names;
  for (const auto list : lists) names.insert(list.begin(), list.end());
  return names;
}

TEST(ModelsPage, EveryGoldenIsInAList) {
  const std::filesystem::path data = OCTET_TEST_DATA;
  std::set<std::string> folders, files;
  for (const auto& entry : std::filesystem::directory_iterator(data / "models"))
    folders.insert(entry.path().filename().string());
  for (const auto& entry : std::filesystem::directory_iterator(data / "gguf")) {
    if (entry.path().extension() == ".gguf") files.insert(entry.path().stem().string());
  }
  EXPECT_EQ(folders, listed({testing::kPlainGoldens, testing::kExpertGoldens, testing::kFp8Goldens,
                             testing::kFp8ExpertGoldens, testing::kFp8CacheGoldens}));
  EXPECT_EQ(files, listed({testing::kGgufGoldens, testing::kGgufExpertGoldens}));
}

// As the page says of instruction sets.
TEST(ModelsPage, EverySetComputesEveryType) {
  const auto scalar = ops::make_cpu_backend(1, "scalar");
  for (const std::string& isa : testing::available_isas()) {
    const auto backend = ops::make_cpu_backend(1, isa);
    for (int type = 0; type <= static_cast<int>(DType::kMXFP4); ++type) {
      EXPECT_EQ(backend->can_pack(static_cast<DType>(type)), scalar->can_pack(static_cast<DType>(type))) << isa << type;
    }
  }
}

}  // namespace
}  // namespace octet::models
