// A tiny real model behind a ModelExecutor.
#pragma once
#include <memory>
#include <optional>

#include "octet/engine/model_executor.h"
#include "tests/support/tiny_model.h"

namespace octet::testing {

struct TinyExecutorOptions {
  TinyModelSpec model;
  DType dtype = DType::kBF16;        // of LoadOptions
  std::optional<DType> cache_dtype;  // of LoadOptions
  int threads = 1;
  std::int32_t slots = 4, max_rows = 64, max_context = 512;
  std::int32_t blocks = 64, block_size = 16;
  std::int32_t scored_rows = 8;
  int steps_in_flight = 1;
  engine::LogprobsMode logprobs_mode = engine::LogprobsMode::kRawLogprobs;
};

// Fails the process where the model cannot be made.
std::unique_ptr<engine::ModelExecutor> make_tiny_executor(const TinyExecutorOptions& options);

}  // namespace octet::testing
