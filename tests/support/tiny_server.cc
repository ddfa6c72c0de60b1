#include "tests/support/tiny_server.h"

#include "tests/support/byte_tokenizer.h"
#include "tests/support/tiny_executor.h"

namespace octet::testing {

TestServerOptions tiny_server(const TinyServerSpec& spec) {
  TinyExecutorOptions executor;
  executor.model.vocabulary = kByteVocabulary;
  executor.model.eos_token = kByteEos;
  executor.slots = spec.slots;
  executor.max_rows = spec.max_rows;
  executor.max_context = spec.context;
  executor.blocks = spec.blocks;
  executor.cache_dtype = spec.cache_dtype;
  TestServerOptions options;
  options.executor = make_tiny_executor(executor);
  options.faults = std::make_shared<StepFaults>();
  options.max_sequences = spec.slots;
  options.max_step_rows = spec.max_rows;
  options.max_model_len = spec.context;
  options.blocks = spec.blocks;
  options.api.prompt_tokens_details = true;
  return options;
}

}  // namespace octet::testing
