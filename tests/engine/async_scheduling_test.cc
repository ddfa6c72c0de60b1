// With two steps in flight one is planned while another runs, and nobody's answer changes.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "octet/engine/replica.h"
#include "tests/support/gated_executor.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_model.h"

namespace octet::engine {
namespace {

using testing::GatedExecutor;

// How many steps an engine has submitted at most when none has ended.
int most_in_flight(int steps_in_flight) {
  auto gate = std::make_shared<GatedExecutor::Gate>();
  EngineConfig config;
  config.scheduler.blocks = 64;
  config.vocabulary_size = testing::kByteVocabulary;
  config.steps_in_flight = steps_in_flight;
  Engine engine(config, std::make_unique<GatedExecutor>("abc", 64, gate), nullptr);
  std::promise<void> ended;
  Request request;
  request.prompt = {1, 2, 3};
  request.sampling.max_tokens = 8;
  request.want_text = false;
  request.sink = [&](Output&& output) {
    if (output.finish != FinishReason::kNone) ended.set_value();
  };
  EXPECT_TRUE(engine.submit(std::move(request)).has_value());
  gate->steps.release(1000);
  ended.get_future().wait();
  return gate->most_in_flight;
}

TEST(AsyncScheduling, PlansAStepWhileAnotherRuns) {
  EXPECT_EQ(most_in_flight(1), 1);
  EXPECT_EQ(most_in_flight(2), 2);
}

TEST(AsyncScheduling, ChangesNoToken) {
  const testing::TempFolder folder;
  testing::make_tiny_model({.max_positions = 512}).write(folder.path());
  std::vector<std::vector<TokenId>> said[2];
  for (const int steps : {1, 2}) {
    ReplicaOptions options;
    options.model = folder.path();
    options.threads = 1;
    options.kv_cache_bytes = std::int64_t{4} << 20;
    options.max_num_batched_tokens = 32;
    options.skip_tokenizer = true;
    options.steps_in_flight = steps;
    auto replica = load_replica(options);
    ASSERT_TRUE(replica.has_value()) << replica.error().message;
    EXPECT_EQ((*replica)->engine->config().steps_in_flight, steps);
    auto& tokens = said[steps - 1];
    tokens.resize(6);
    std::vector<std::future<void>> ends;
    std::vector<std::promise<void>> promises(6);
    for (std::size_t i = 0; i < 6; ++i) {
      Request request;
      request.prompt.assign(10 + 7 * i, static_cast<TokenId>(3 + i));
      request.sampling.temperature = i % 2 == 0 ? 0.0F : 1.0F;
      request.sampling.seed = i;
      request.sampling.controls.repetition_penalty = i % 3 == 0 ? 1.3F : 1.0F;
      request.sampling.max_tokens = 30;
      request.want_text = false;
      ends.push_back(promises[i].get_future());
      request.sink = [&tokens, &promises, i](Output&& output) {
        tokens[i].insert(tokens[i].end(), output.tokens.begin(), output.tokens.end());
        if (output.finish != FinishReason::kNone) promises[i].set_value();
      };
      ASSERT_TRUE((*replica)->engine->submit(std::move(request)).has_value());
    }
    for (auto& end : ends) end.wait();
  }
  EXPECT_EQ(said[0], said[1]);
}

}  // namespace
}  // namespace octet::engine
