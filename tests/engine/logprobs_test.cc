// Log-probabilities, penalties and other controls through scheduler, executor and a tiny real model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "octet/engine/model_executor.h"
#include "octet/engine/scheduler.h"
#include "tests/support/tiny_executor.h"

namespace octet::engine {
namespace {

using testing::TinyExecutorOptions;

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

struct Line {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  std::vector<TokenId> said = {};
  std::vector<Logprob> logprobs = {}, prompt_logprobs = {};
};

void append(std::span<const TokenLogprob> from, std::span<const TokenScore> top, std::vector<Logprob>& to) {
  for (const TokenLogprob& one : from) {
    const auto best = top.subspan(static_cast<std::size_t>(one.top_at), static_cast<std::size_t>(one.top));
    to.push_back({one.score, one.rank, {best.begin(), best.end()}});
  }
}

// Runs all lines together; returns how often a sequence was preempted.
std::uint64_t run(const TinyExecutorOptions& options, std::vector<Line>& lines, TokenId eos = -1) {
  const auto executor = testing::make_tiny_executor(options);
  SchedulerConfig config{.max_sequences = options.slots,
                         .max_step_rows = options.max_rows,
                         .max_context = options.max_context,
                         .blocks = options.blocks,
                         .block_size = options.block_size,
                         .max_scored_rows = options.scored_rows,
                         .eos_tokens = {}};
  if (eos >= 0) config.eos_tokens = {eos};
  Scheduler scheduler(config);
  std::map<SequenceId, Line*> lines_of;
  for (Line& line : lines) {
    lines_of[scheduler.add(line.prompt, line.sampling, 0, 0, 0).value()] = &line;
  }
  std::vector<Ticket> in_flight;
  std::vector<SequenceEvent> events;
  PlanBuilder builder;
  while (!scheduler.idle()) {
    while (static_cast<int>(in_flight.size()) < options.steps_in_flight && scheduler.plan(builder)) {
      in_flight.push_back(executor->submit(builder.finish()));
    }
    const StepResult result = executor->collect(in_flight.front());
    in_flight.erase(in_flight.begin());
    events.clear();
    scheduler.update(result, events);
    for (const SequenceEvent& event : events) {
      Line& line = *lines_of.at(event.sequence);
      line.said.insert(line.said.end(), event.tokens.begin(), event.tokens.end());
      append(event.logprobs, event.top, line.logprobs);
      append(event.prompt_logprobs, event.top, line.prompt_logprobs);
    }
    EXPECT_EQ(scheduler.check_integrity(), "");
  }
  return scheduler.counts().preemptions;
}

std::vector<TokenId> random_prompt(std::mt19937& random, std::size_t length) {
  std::vector<TokenId> prompt(length);
  for (TokenId& id : prompt) id = static_cast<TokenId>(random() % 320);
  return prompt;
}

Line line_of(std::vector<TokenId> prompt, std::int32_t max_tokens) {
  Line line{.prompt = std::move(prompt)};
  line.sampling.temperature = 0;
  line.sampling.max_tokens = max_tokens;
  line.sampling.seed = 1;
  return line;
}

void expect_equal(const std::vector<Logprob>& a, const std::vector<Logprob>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].score.token, b[i].score.token) << i;
    EXPECT_EQ(a[i].score.logprob, b[i].score.logprob) << i;
    EXPECT_EQ(a[i].rank, b[i].rank) << i;
    ASSERT_EQ(a[i].top.size(), b[i].top.size()) << i;
  }
}

TEST(EngineLogprobs, GreedyTokensAreTheLikeliest) {
  std::mt19937 random(1);
  std::vector<Line> lines{line_of(random_prompt(random, 20), 12), line_of(random_prompt(random, 5), 12)};
  lines[0].sampling.logprobs = 3;
  run({}, lines);
  ASSERT_EQ(lines[0].logprobs.size(), 12U);
  EXPECT_TRUE(lines[1].logprobs.empty());
  for (std::size_t i = 0; i < 12; ++i) {
    const Logprob& one = lines[0].logprobs[i];
    EXPECT_EQ(one.score.token, lines[0].said[i]);
    EXPECT_EQ(one.rank, 1);
    ASSERT_EQ(one.top.size(), 3U);
    EXPECT_EQ(one.top[0].token, one.score.token);
    EXPECT_EQ(one.top[0].logprob, one.score.logprob);
    EXPECT_GE(one.top[0].logprob, one.top[1].logprob);
    EXPECT_LT(one.score.logprob, 0.0f);
  }
}

// The prompt of one request is what another one said: both tell the same log-probabilities, bit for bit, whatever the
// chunks, the neighbours and the preemptions.
TEST(EngineLogprobs, OfThePromptAreThoseOfTheAnswer) {
  std::mt19937 random(2);
  std::vector<Line> first{line_of(random_prompt(random, 30), 40)};
  first[0].sampling.logprobs = 2;
  run({}, first);
  std::vector<TokenId> all = first[0].prompt;
  all.insert(all.end(), first[0].said.begin(), first[0].said.end());

  for (const TinyExecutorOptions& options :
       {TinyExecutorOptions{}, TinyExecutorOptions{.max_rows = 16, .scored_rows = 3},
        TinyExecutorOptions{.max_rows = 256, .scored_rows = 100}, TinyExecutorOptions{.steps_in_flight = 2}}) {
    std::vector<Line> lines{line_of(all, 2), line_of(random_prompt(random, 50), 20), line_of(all, 2)};
    lines[0].sampling.prompt_logprobs = lines[2].sampling.prompt_logprobs = 2;
    run(options, lines);
    ASSERT_EQ(lines[0].prompt_logprobs.size(), all.size() - 1);
    expect_equal({lines[0].prompt_logprobs.begin() + 29, lines[0].prompt_logprobs.end()}, first[0].logprobs);
    expect_equal(lines[0].prompt_logprobs, lines[2].prompt_logprobs);
    EXPECT_TRUE(lines[1].prompt_logprobs.empty());
    EXPECT_EQ(lines[0].said, lines[2].said);
  }
}

TEST(EngineControls, BiasForbidsAndForces) {
  std::mt19937 random(3);
  const auto prompt = random_prompt(random, 10);
  std::vector<Line> plain{line_of(prompt, 5)};
  run({}, plain);
  std::vector<Line> lines(4, line_of(prompt, 5));
  lines[0].sampling.controls.logit_bias = {{plain[0].said[0], -100.0f}};
  lines[1].sampling.controls.logit_bias = {{7, 100.0f}};
  lines[2].sampling.controls.allowed = {11, 12};
  run({}, lines);
  EXPECT_EQ(std::ranges::count(lines[0].said, plain[0].said[0]), 0);
  EXPECT_EQ(lines[1].said, std::vector<TokenId>(5, 7));
  for (const TokenId id : lines[2].said) EXPECT_TRUE(id == 11 || id == 12);
  EXPECT_EQ(lines[3].said, plain[0].said);  // neighbours are not reached
}

TEST(EngineControls, PenaltiesCountWhatWasSaid) {
  std::mt19937 random(4);
  std::vector<Line> lines(3, line_of(random_prompt(random, 10), 60));
  lines[0].sampling.controls.presence_penalty = 1000;
  lines[1].sampling.controls.repetition_penalty = 1e9f;
  run({}, lines);
  // Nothing is said twice while anything else is left; repetition counts the prompt, too.
  EXPECT_EQ(std::set(lines[0].said.begin(), lines[0].said.end()).size(), 60U);
  EXPECT_LT(std::set(lines[2].said.begin(), lines[2].said.end()).size(), 60U);
  for (const TokenId id : lines[1].said) EXPECT_EQ(std::ranges::count(lines[1].prompt, id), 0);
}

TEST(EngineControls, AreTheSameAlonePreemptedAndInFlight) {
  std::mt19937 random(5);
  std::vector<Line> lines;
  for (int i = 0; i < 8; ++i) {
    Line line = line_of(random_prompt(random, 5 + random() % 30), 50);
    line.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    line.sampling.seed = random();
    line.sampling.controls.frequency_penalty = 0.7f;
    line.sampling.controls.repetition_penalty = 1.3f;
    line.sampling.controls.logit_bias = {{static_cast<TokenId>(i), 2.0f}};
    line.sampling.logprobs = 1;
    lines.push_back(line);
  }
  std::vector<Line> alone = lines;
  for (Line& line : alone) {
    std::vector<Line> one{line};
    run({.slots = 1}, one);
    line = one[0];
  }
  std::uint64_t preemptions = 0;
  for (const TinyExecutorOptions& options :
       {TinyExecutorOptions{.blocks = 14}, TinyExecutorOptions{.max_rows = 16, .blocks = 12, .steps_in_flight = 2}}) {
    std::vector<Line> together = lines;
    preemptions += run(options, together);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(together[i].said, alone[i].said) << i;
      expect_equal(together[i].logprobs, alone[i].logprobs);
    }
  }
  EXPECT_GT(preemptions, 0U);
}

TEST(EngineControls, BadWordsAndMinTokens) {
  std::mt19937 random(6);
  const auto prompt = random_prompt(random, 10);
  std::vector<Line> plain{line_of(prompt, 8)};
  run({}, plain);
  const std::vector<TokenId>& said = plain[0].said;
  std::vector<Line> lines(2, line_of(prompt, 8));
  lines[0].sampling.controls.bad_words = {{said[2], said[3]}};
  // The first token would end it.
  lines[1].sampling.controls.min_tokens = 4;
  run({}, lines, said[0]);
  const std::vector<TokenId> pair{said[2], said[3]};
  EXPECT_TRUE(std::ranges::search(lines[0].said, pair).empty());
  ASSERT_GE(lines[1].said.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NE(lines[1].said[i], said[0]);
}

TEST(ControlState, EveryTokenIsEditedOnce) {
  SamplingControls controls;
  controls.allowed = {1, 2, 3};
  controls.logit_bias = {{2, 5.0f}, {9, 1.0f}};
  controls.repetition_penalty = 2;
  controls.frequency_penalty = 0.5f;
  controls.presence_penalty = 0.25f;
  controls.bad_words = {{3}, {2, 1}};
  std::vector<std::int32_t> words;
  const std::vector<TokenId> tokens{2, 9, 2, 2};
  append_words(controls, tokens, 1, words);
  ControlState state = read_words(words);
  state.said(2);
  std::vector<ops::LogitEdit> edits(1);  // of a row before
  ops::SamplingRow row;
  state.add_edits(edits, row);
  EXPECT_EQ(row.first_edit, 1);
  ASSERT_EQ(row.edits, 3);
  EXPECT_EQ(row.only_edited, 1);
  const auto edit = [&](TokenId id) {
    return *std::ranges::find(edits.begin() + 1, edits.end(), id, &ops::LogitEdit::token);
  };
  EXPECT_EQ(edit(1).bias, kForbidden);  // it would end the word {2, 1}
  EXPECT_EQ(edit(3).bias, kForbidden);
  EXPECT_EQ(edit(2).bias, 5.0f);
  EXPECT_EQ(edit(2).repetition, 2.0f);
  EXPECT_FLOAT_EQ(edit(2).subtract, 0.25f + 0.5f * 3);
}

}  // namespace
}  // namespace octet::engine
