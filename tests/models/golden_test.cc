// Whole models against the reference implementation's logits and greedy tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/golden_lists.h"
#include "tests/support/golden_model.h"
#include "tests/support/model_driver.h"

namespace octet::models {
namespace {

using testing::DriverOptions;
using testing::GoldenModel;
using testing::GoldenRun;
using testing::LogitDifference;
using testing::ModelDriver;

constexpr int kChunk = 32;  // shorter than the long prompts, so that every golden meets chunked prefill

// Feeds a run's prompt and the stored continuation. Returns the model's own choice where each stored token stands.
std::vector<std::int32_t> follow(ModelDriver& driver, const GoldenRun& run, LogitDifference& difference) {
  driver.reset(0);
  const auto prompt_logits = driver.run(0, run.prompt, kChunk);
  for (std::size_t i = 0; i < run.logit_positions.size(); ++i)
    difference.add(prompt_logits[static_cast<std::size_t>(run.logit_positions[i])], run.prompt_logits[i]);
  std::vector<std::int32_t> chosen;
  for (std::size_t step = 0; step < run.continuation.size(); ++step) {
    const auto logits =
        step == 0 ? prompt_logits.back() : driver.run(0, std::span(&run.continuation[step - 1], 1), 1).front();
    if (!run.continuation_logits.empty()) difference.add(logits, run.continuation_logits[step]);
    chosen.push_back(testing::argmax(logits));
  }
  return chosen;
}

struct Outcome {
  LogitDifference difference;
  int tokens = 0, right = 0;
  std::string wrong_tokens;  // those whose margin lies above what `margin_floor` excuses
};

Outcome compare(const std::filesystem::path& path, const GoldenModel& golden, const DriverOptions& options,
                double margin_floor) {
  auto driver = ModelDriver::open(path, options);
  Outcome outcome;
  EXPECT_TRUE(driver.has_value()) << driver.error().message;
  if (!driver) return outcome;
  for (const GoldenRun& run : golden.runs) {
    const std::vector<std::int32_t> chosen = follow(**driver, run, outcome.difference);
    for (std::size_t step = 0; step < chosen.size(); ++step) {
      if (run.margins[step] <= margin_floor) continue;
      ++outcome.tokens;
      outcome.right += chosen[step] == run.continuation[step] ? 1 : 0;
      if (chosen[step] != run.continuation[step])
        outcome.wrong_tokens += fmt::format("step {} of a prompt of {}: {} instead of {}; ", step, run.prompt.size(),
                                            chosen[step], run.continuation[step]);
    }
  }
  ::testing::Test::RecordProperty("largest_" + options.isa, fmt::format("{:.2e}", outcome.difference.largest()));
  ::testing::Test::RecordProperty("nmse_" + options.isa, fmt::format("{:.2e}", outcome.difference.nmse()));
  return outcome;
}

std::string test_name(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

class HfGolden : public ::testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path path() const { return std::filesystem::path(OCTET_TEST_DATA) / "models" / GetParam(); }
  void equals_reference() const {
    const GoldenModel golden = testing::read_golden_folder(path());
    for (const std::string& isa : testing::available_isas()) {
      SCOPED_TRACE(isa);
      const Outcome outcome = compare(path(), golden, {.dtype = DType::kF32, .isa = isa}, 0.0);
      EXPECT_LE(outcome.difference.largest(), 5e-4);
      EXPECT_GE(outcome.difference.rows(), 66 + 100);
      EXPECT_EQ(outcome.wrong_tokens, "");
      EXPECT_GE(outcome.tokens, 100);
    }
  }
};

TEST_P(HfGolden, Float32EqualsReference) { equals_reference(); }

TEST_P(HfGolden, Bfloat16StaysWithinItsTolerance) {
  const GoldenModel golden = testing::read_golden_folder(path());
  for (const std::string& isa : testing::available_isas()) {
    SCOPED_TRACE(isa);
    const Outcome outcome = compare(path(), golden, {.dtype = DType::kBF16, .isa = isa}, 0.0);
    EXPECT_LE(outcome.difference.nmse(), 5e-4);
    EXPECT_LE(outcome.difference.largest(), 0.8);
    EXPECT_GE(outcome.difference.rows(), 66 + 100);
    EXPECT_EQ(outcome.wrong_tokens, "");
  }
}

// Where experts tie nearly, rounding swaps them and single positions move by whole logits, so their largest difference
// says little. The router sees float32.
class HfExpertsGolden : public HfGolden {};

TEST_P(HfExpertsGolden, Float32EqualsReference) { equals_reference(); }

TEST_P(HfExpertsGolden, Bfloat16StaysWithinItsTolerance) {
  const GoldenModel golden = testing::read_golden_folder(path());
  for (const std::string& isa : testing::available_isas()) {
    SCOPED_TRACE(isa);
    const Outcome outcome = compare(path(), golden, {.dtype = DType::kBF16, .isa = isa}, 0.0);
    EXPECT_LE(outcome.difference.nmse(), 3e-3);
    EXPECT_GE(outcome.difference.rows(), 66 + 100);
    EXPECT_EQ(outcome.wrong_tokens, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HfExpertsGolden, ::testing::ValuesIn(testing::kExpertGoldens), test_name);

INSTANTIATE_TEST_SUITE_P(Models, HfGolden, ::testing::ValuesIn(testing::kPlainGoldens), test_name);

class GgufGolden : public ::testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path path() const {
    return std::filesystem::path(OCTET_TEST_DATA) / "gguf" / (std::string(GetParam()) + ".gguf");
  }
  // scalar_largest: the scalar set rounds each product before it adds it.
  void equals_reference(double scalar_largest = 2e-5) const {
    const GoldenModel golden = testing::read_golden_gguf(path());
    for (const std::string& isa : testing::available_isas()) {
      SCOPED_TRACE(isa);
      const Outcome outcome = compare(path(), golden, {.dtype = DType::kF32, .isa = isa}, 0.0);
      EXPECT_LE(outcome.difference.largest(), isa == "scalar" ? scalar_largest : 2e-5);
      EXPECT_EQ(outcome.difference.rows(), 1 + 5 + 17 + 48);
      EXPECT_EQ(outcome.wrong_tokens, "");
      EXPECT_EQ(outcome.tokens, 3 * 24);
    }
  }
};

TEST_P(GgufGolden, Float32EqualsReference) { equals_reference(); }

// Tokens are compared where the reference's margin is above the noise that llama.cpp shows on the same file.
TEST_P(GgufGolden, DefaultStaysWithinItsTolerance) {
  const GoldenModel golden = testing::read_golden_gguf(path());
  const double noise = 1.5 * golden.peer_max_difference;
  for (const std::string& isa : testing::available_isas()) {
    SCOPED_TRACE(isa);
    const Outcome outcome = compare(path(), golden, {.dtype = DType::kBF16, .isa = isa}, noise);
    EXPECT_LE(outcome.difference.nmse(), 1e-4);
    EXPECT_LE(outcome.difference.largest(), 0.8);
    EXPECT_EQ(outcome.difference.rows(), 1 + 5 + 17 + 48);
    EXPECT_EQ(outcome.wrong_tokens, "");
    EXPECT_GT(outcome.tokens, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GgufGolden, ::testing::ValuesIn(testing::kGgufGoldens), test_name);

class GgufExpertsGolden : public GgufGolden {};

TEST_P(GgufExpertsGolden, Float32EqualsReference) { equals_reference(2e-5); }

TEST_P(GgufExpertsGolden, DefaultStaysWithinItsTolerance) {
  const GoldenModel golden = testing::read_golden_gguf(path());
  for (const std::string& isa : testing::available_isas()) {
    SCOPED_TRACE(isa);
    const Outcome outcome = compare(path(), golden, {.dtype = DType::kBF16, .isa = isa}, 0.0);
    EXPECT_LE(outcome.difference.nmse(), 3e-3);
    EXPECT_EQ(outcome.difference.rows(), 1 + 5 + 17 + 48);
    EXPECT_GE(outcome.right, 0.95 * outcome.tokens) << outcome.wrong_tokens;
    EXPECT_EQ(outcome.tokens, 3 * 24);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GgufExpertsGolden, ::testing::ValuesIn(testing::kGgufExpertGoldens), test_name);

}  // namespace
}  // namespace octet::models
