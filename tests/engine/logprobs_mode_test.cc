// What is told of tokens, by mode, through scheduler, executor and a tiny real model.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "octet/engine/model_executor.h"
#include "octet/engine/scheduler.h"
#include "tests/support/tiny_executor.h"

namespace octet::engine {
namespace {

using Mode = LogprobsMode;

struct Told {
  TokenScore drawn;
  std::int32_t rank = 0;
  std::map<TokenId, float> top;
  std::vector<float> prompt;  // of its tokens but the first
};

// Of the first token behind a prompt.
Told first_token(Mode mode, SamplingParams sampling) {
  testing::TinyExecutorOptions options;
  options.logprobs_mode = mode;
  const auto executor = testing::make_tiny_executor(options);
  Scheduler scheduler({.max_sequences = options.slots,
                       .max_step_rows = options.max_rows,
                       .max_context = options.max_context,
                       .blocks = options.blocks,
                       .block_size = options.block_size,
                       .max_scored_rows = options.scored_rows,
                       .eos_tokens = {}});
  sampling.max_tokens = 1;
  sampling.seed = 7;
  sampling.logprobs = 20;
  sampling.prompt_logprobs = 0;
  scheduler.add({5, 6, 7, 8}, sampling, 0, 0, 0).value();
  PlanBuilder builder;
  std::vector<SequenceEvent> events;
  Told told;
  while (scheduler.plan(builder)) {
    scheduler.update(executor->collect(executor->submit(builder.finish())), events);
    for (const SequenceEvent& event : events) {
      for (const TokenLogprob& one : event.prompt_logprobs) told.prompt.push_back(one.score.logprob);
      for (const TokenLogprob& one : event.logprobs) {
        told.drawn = one.score;
        told.rank = one.rank;
        for (std::int32_t i = 0; i < one.top; ++i) {
          const TokenScore& score = event.top[static_cast<std::size_t>(one.top_at + i)];
          told.top[score.token] = score.logprob;
        }
      }
    }
    events.clear();
  }
  return told;
}

SamplingParams sampling_at(float temperature) {
  SamplingParams sampling;
  sampling.temperature = temperature;
  return sampling;
}

double mass(const Told& told) {
  return std::accumulate(told.top.begin(), told.top.end(), 0.0,
                         [](double sum, const auto& entry) { return sum + std::exp(double{entry.second}); });
}

TEST(LogprobsMode, LogitsDifferByOneNumberFromLogprobs) {
  const Told logprobs = first_token(Mode::kRawLogprobs, sampling_at(1)),
             logits = first_token(Mode::kRawLogits, sampling_at(1));
  ASSERT_EQ(logits.top.size(), 20U);
  EXPECT_EQ(logits.drawn.token, logprobs.drawn.token);
  EXPECT_EQ(logits.rank, logprobs.rank);
  const float norm = logits.drawn.logprob - logprobs.drawn.logprob;
  EXPECT_GT(std::abs(norm), 0.5f);
  for (const auto& [token, logit] : logits.top) EXPECT_NEAR(logit - logprobs.top.at(token), norm, 1e-4) << token;
  ASSERT_EQ(logits.prompt.size(), 3U);
  EXPECT_GT(std::abs(logits.prompt[0] - logprobs.prompt[0]), 0.5f);
}

TEST(LogprobsMode, RawOnesKnowNothingOfSampling) {
  SamplingParams bent = sampling_at(0.5f);
  bent.controls.logit_bias = {{9, 30.0f}};
  bent.top_k = 3;
  for (const Mode mode : {Mode::kRawLogprobs, Mode::kRawLogits}) {
    const Told plain = first_token(mode, sampling_at(1)), told = first_token(mode, bent);
    EXPECT_EQ(told.top, plain.top);
    EXPECT_EQ(told.drawn.token, 9);
    EXPECT_EQ(told.prompt, plain.prompt);
  }
}

TEST(LogprobsMode, ProcessedLogitsAreBiasedAndOverTheTemperature) {
  const Told raw = first_token(Mode::kRawLogits, sampling_at(1));
  SamplingParams bent = sampling_at(0.5f);
  bent.controls.logit_bias = {{9, 30.0f}};
  const Told told = first_token(Mode::kProcessedLogits, bent);
  EXPECT_EQ(told.drawn.token, 9);
  EXPECT_EQ(told.rank, 1);
  EXPECT_GT(told.top.at(9), 60 - 2 * 20);
  std::size_t common = 0;
  for (const auto& [token, logit] : told.top) {
    if (token == 9 || !raw.top.contains(token)) continue;
    ++common;
    EXPECT_NEAR(logit, raw.top.at(token) / 0.5f, 1e-4) << token;
  }
  EXPECT_GE(common, 18U);
  EXPECT_EQ(told.prompt, raw.prompt);
}

TEST(LogprobsMode, ProcessedGreedyOnesAreBiasedAlone) {
  const Told raw = first_token(Mode::kRawLogits, sampling_at(0));
  SamplingParams bent = sampling_at(0);
  bent.controls.logit_bias = {{raw.drawn.token, -100.0f}};
  const Told told = first_token(Mode::kProcessedLogits, bent);
  EXPECT_NE(told.drawn.token, raw.drawn.token);
  EXPECT_EQ(told.drawn.logprob, raw.top.at(told.drawn.token));
  EXPECT_EQ(told.rank, 1);
  EXPECT_FALSE(told.top.contains(raw.drawn.token));
}

TEST(LogprobsMode, ProcessedLogprobsAreOfTheDistributionThatIsDrawnFrom) {
  SamplingParams top_k = sampling_at(1);
  top_k.top_k = 3;
  const Told three = first_token(Mode::kProcessedLogprobs, top_k);
  EXPECT_EQ(three.top.size(), 3U);
  EXPECT_NEAR(mass(three), 1, 1e-4);
  EXPECT_TRUE(three.top.contains(three.drawn.token));

  const Told raw = first_token(Mode::kRawLogprobs, sampling_at(1));
  SamplingParams top_p = sampling_at(1);
  top_p.top_p = 0.6f;
  const Told nucleus = first_token(Mode::kProcessedLogprobs, top_p);
  EXPECT_LT(nucleus.top.size(), 20U);
  EXPECT_NEAR(mass(nucleus), 1, 1e-4);
  double kept = 0;
  for (const auto& [token, logprob] : nucleus.top) kept += std::exp(double{raw.top.at(token)});
  EXPECT_GE(kept, 0.6 - 1e-4);
  EXPECT_LT(mass(raw), 1);

  SamplingParams min_p = sampling_at(1);
  min_p.min_p = 0.5f;
  const Told likely = first_token(Mode::kProcessedLogprobs, min_p);
  float best = -100, least = 0;
  for (const auto& [token, logprob] : likely.top) best = std::max(best, logprob), least = std::min(least, logprob);
  EXPECT_GE(least, best + std::log(0.5f) - 1e-4f);
  EXPECT_NEAR(mass(likely), 1, 1e-4);
}

TEST(LogprobsMode, OnlyAllowedTokensAreListed) {
  SamplingParams allowed = sampling_at(1);
  allowed.controls.allowed = {11, 12};
  const Told told = first_token(Mode::kProcessedLogprobs, allowed);
  EXPECT_EQ(told.top.size(), 2U);
  EXPECT_NEAR(mass(told), 1, 1e-4);
}

}  // namespace
}  // namespace octet::engine
