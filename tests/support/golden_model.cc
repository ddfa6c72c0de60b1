#include "tests/support/golden_model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "octet/formats/safetensors.h"

namespace octet::testing {
namespace {

using Json = nlohmann::json;
using Matrix = std::vector<std::vector<float>>;

Json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

Matrix read_matrix(const formats::SafetensorsFile& file, const std::string& name) {
  const formats::StoredTensor& tensor = file.tensors().at(name);
  if (tensor.dtype != DType::kF32 || tensor.shape.size() != 2) throw std::runtime_error(name + " is no F32 matrix");
  Matrix rows(static_cast<std::size_t>(tensor.shape[0]), std::vector<float>(static_cast<std::size_t>(tensor.shape[1])));
  const std::byte* data = tensor.data.data();
  for (std::vector<float>& row : rows) {
    std::memcpy(row.data(), data, row.size() * sizeof(float));
    data += row.size() * sizeof(float);
  }
  return rows;
}

formats::SafetensorsFile open_logits(const std::filesystem::path& path) {
  auto file = formats::SafetensorsFile::open(path);
  if (!file) throw std::runtime_error(file.error().message);
  return *std::move(file);
}

// Libraries that read JSON throw; here that is a failed test.
template <typename Read>
GoldenModel guarded(const std::filesystem::path& path, Read read) {
  try {
    return read();
  } catch (const std::exception& error) {
    ADD_FAILURE() << path << ": " << error.what();
    return {};
  }
}

}  // namespace

GoldenModel read_golden_folder(const std::filesystem::path& folder, const std::string& computation) {
  return guarded(folder, [&] {
    const Json golden = read_json(folder / "golden.json");
    const formats::SafetensorsFile logits = open_logits(folder / "golden.logits");
    GoldenModel model;
    const Json& reference = golden.at("references").at(computation).at("runs");
    for (std::size_t i = 0; i < golden.at("prompts").size(); ++i) {
      const Json& prompt = golden["prompts"][i];
      GoldenRun& run = model.runs.emplace_back();
      prompt.at("tokens").get_to(run.prompt);
      prompt.at("logit_positions").get_to(run.logit_positions);
      reference.at(i).at("continuation").get_to(run.continuation);
      reference.at(i).at("margins").get_to(run.margins);
      run.prompt_logits = read_matrix(logits, fmt::format("{}.logits.{}", computation, i));
      run.continuation_logits = read_matrix(logits, fmt::format("{}.step_logits.{}", computation, i));
    }
    return model;
  });
}

GoldenModel read_golden_gguf(const std::filesystem::path& gguf) {
  return guarded(gguf, [&] {
    std::filesystem::path base = gguf;
    base.replace_extension();
    const Json golden = read_json(base.string() + ".json");
    const formats::SafetensorsFile logits = open_logits(base.string() + ".logits.safetensors");
    GoldenModel model;
    golden.at("llama_cpp").at("max_abs_logit_difference_this_file").get_to(model.peer_max_difference);
    for (std::size_t i = 0; i < golden.at("sequences").size(); ++i) {
      GoldenRun& run = model.runs.emplace_back();
      golden["sequences"][i].get_to(run.prompt);
      for (std::size_t t = 0; t < run.prompt.size(); ++t) run.logit_positions.push_back(static_cast<std::int32_t>(t));
      run.prompt_logits = read_matrix(logits, fmt::format("logits.{}", i));
    }
    for (const Json& greedy : golden.at("greedy")) {
      GoldenRun& run = model.runs.emplace_back();
      greedy.at("prompt").get_to(run.prompt);
      greedy.at("tokens").get_to(run.continuation);
      greedy.at("margins").get_to(run.margins);
    }
    return model;
  });
}

void LogitDifference::add(std::span<const float> got, std::span<const float> reference) {
  ASSERT_EQ(got.size(), reference.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - static_cast<double>(reference[i]);
    // A NaN must not pass for a small difference.
    largest_ =
        std::isfinite(difference) ? std::max(largest_, std::abs(difference)) : std::numeric_limits<double>::infinity();
    squares_ += difference * difference;
    reference_squares_ += static_cast<double>(reference[i]) * static_cast<double>(reference[i]);
  }
  ++rows_;
}

}  // namespace octet::testing
