#include "tests/support/tiny_executor.h"

#include "octet/base/check.h"
#include "octet/formats/checkpoint.h"
#include "tests/support/temp_folder.h"

namespace octet::testing {

std::unique_ptr<engine::ModelExecutor> make_tiny_executor(const TinyExecutorOptions& options) {
  const TempFolder folder;
  make_tiny_model(options.model).write(folder.path());
  const auto checkpoint = formats::Checkpoint::open(folder.path());
  OCTET_CHECK(checkpoint.has_value());
  engine::ModelParts parts;
  parts.backend = ops::make_cpu_backend(options.threads);
  parts.stream = parts.backend->create_stream();
  parts.group = comm::make_solo_group();
  auto model = models::load_model(**checkpoint, *parts.backend, *parts.stream, *parts.group,
                                  {.dtype = options.dtype,
                                   .cache_dtype = options.cache_dtype,
                                   .max_rows = options.max_rows,
                                   .max_logits_rows = options.max_rows,
                                   .max_positions = options.max_context,
                                   .block_size = options.block_size,
                                   .progress = {}});
  OCTET_CHECK(model.has_value());
  parts.model = *std::move(model);
  return std::make_unique<engine::ModelExecutor>(
      engine::ModelExecutorConfig{
          .slots = options.slots,
          .scored_rows = options.scored_rows,
          .max_logprobs = 20,
          .logprobs_mode = options.logprobs_mode,
          .max_rows = options.max_rows,
          .blocks_per_slot = (options.max_context + options.block_size - 1) / options.block_size,
          .blocks = options.blocks,
          .block_size = options.block_size,
          .steps_in_flight = options.steps_in_flight},
      std::move(parts));
}

}  // namespace octet::testing
