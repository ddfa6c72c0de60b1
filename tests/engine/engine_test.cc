// The engine over executors without a model: life and death of requests, from any thread.
#include "octet/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/support/byte_tokenizer.h"
#include "tests/support/null_executor.h"
#include "tests/support/replay_executor.h"

namespace octet::engine {
namespace {

using testing::bytes_of_text;
using testing::NullExecutor;
using testing::ReplayExecutor;

constexpr std::int64_t kForever = std::int64_t{1} << 62;

// What one client got, choice by choice.
class Client {
 public:
  explicit Client(int choices = 1) : answers_(static_cast<std::size_t>(choices)) {}

  struct Answer {
    std::vector<TokenId> tokens;
    std::string text;
    std::vector<std::string> pieces;
    Output last;
    int outputs = 0, after_end = 0;
  };

  OutputSink sink() {
    return [this](Output&& output) {
      const std::lock_guard lock(mutex_);
      Answer& answer = answers_[static_cast<std::size_t>(output.choice)];
      answer.after_end += answer.last.finish != FinishReason::kNone;
      ++answer.outputs;
      answer.tokens.insert(answer.tokens.end(), output.tokens.begin(), output.tokens.end());
      answer.text += output.text;
      answer.pieces.push_back(output.text);
      ended_ += output.finish != FinishReason::kNone;
      answer.last = std::move(output);
      changed_.notify_all();
    };
  }
  const Answer& wait(int choice = 0) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ == static_cast<int>(answers_.size()); });
    return answers_[static_cast<std::size_t>(choice)];
  }
  void wait_for_outputs(int count, int choice = 0) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_[static_cast<std::size_t>(choice)].outputs >= count; });
  }
  bool ended() {
    const std::lock_guard lock(mutex_);
    return ended_ == static_cast<int>(answers_.size());
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Answer> answers_;
  int ended_ = 0;
};

EngineConfig small_config() {
  return {.scheduler = {.max_sequences = 4,
                        .max_step_rows = 32,
                        .max_context = 128,
                        .blocks = 64,
                        .block_size = 8,
                        .max_waiting = 8,
                        .eos_tokens = {}},
          .vocabulary_size = 257,
          .steps_in_flight = 1};
}

std::unique_ptr<NullExecutor> null_executor(const EngineConfig& config) {
  return std::make_unique<NullExecutor>(testing::NullExecutorOptions{.blocks = config.scheduler.blocks,
                                                                     .block_size = config.scheduler.block_size,
                                                                     .slots = config.scheduler.max_sequences,
                                                                     .max_context = config.scheduler.max_context,
                                                                     .vocabulary = config.vocabulary_size});
}

// An engine that says scripts, with a tokenizer of bytes.
struct Replay {
  explicit Replay(std::vector<ReplayExecutor::Script> scripts, EngineConfig config = small_config(),
                  std::int32_t prompt_tokens = 1)
      : tokenizer(testing::make_byte_tokenizer()) {
    config.scheduler.prefix_caching = false;
    config.scheduler.eos_tokens = {testing::kByteEos};
    auto made = std::make_unique<ReplayExecutor>(std::move(scripts), prompt_tokens, config.scheduler.max_sequences);
    executor = made.get();
    engine = std::make_unique<Engine>(config, std::move(made), tokenizer.get());
  }
  std::unique_ptr<text::Tokenizer> tokenizer;
  ReplayExecutor* executor;
  std::unique_ptr<Engine> engine;
};

ReplayExecutor::Script script(std::string_view text, bool ends = true) {
  ReplayExecutor::Script ids = bytes_of_text(text);
  if (ends) ids.push_back(testing::kByteEos);
  return ids;
}

Request request_for(Client& client, std::vector<TokenId> prompt, std::int32_t max_tokens = 100) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.sink = client.sink();
  return request;
}

void expect_clean(Engine& engine) {
  // The last output comes a moment before the figures of the step are written down.
  EngineStats stats = engine.stats();
  for (int i = 0; i < 5000 && (stats.blocks_used != 0 || stats.running != 0 || stats.waiting != 0); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stats = engine.stats();
  }
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.blocks_used, 0);
}

TEST(Engine, AnswersWithTextAndCounts) {
  Replay replay({script("hello")});
  Client client;
  ASSERT_TRUE(replay.engine->submit(request_for(client, {0})).has_value());
  const Client::Answer& answer = client.wait();
  EXPECT_EQ(answer.text, "hello");
  EXPECT_EQ(answer.tokens, script("hello"));
  EXPECT_EQ(answer.last.finish, FinishReason::kStop);
  EXPECT_EQ(answer.last.stop_token, std::nullopt);
  EXPECT_EQ(answer.last.prompt_tokens, 1);
  EXPECT_EQ(answer.last.completion_tokens, 6);
  expect_clean(*replay.engine);
  const EngineStats stats = replay.engine->stats();
  EXPECT_EQ(stats.finished[0], 1u);
  EXPECT_EQ(stats.prompt_tokens, 1u);
  EXPECT_EQ(stats.generation_tokens, 6u);
  EXPECT_EQ(stats.steps, 6u);
  const auto total = [](const HistogramSnapshot& histogram) {
    std::uint64_t sum = 0;
    for (std::uint64_t count : histogram.counts) sum += count;
    return sum;
  };
  EXPECT_EQ(total(stats.time_to_first_token), 1u);
  EXPECT_EQ(total(stats.inter_token_latency), 5u);
  EXPECT_EQ(total(stats.request_latency), 1u);
  EXPECT_EQ(stats.step_rows.counts.front(), 6u);
  EXPECT_EQ(stats.step_rows.bounds.size() + 1, stats.step_rows.counts.size());
}

TEST(Engine, StopStringsAcrossTokens) {
  for (const int steps_in_flight : {1, 2}) {
    EngineConfig config = small_config();
    config.steps_in_flight = steps_in_flight;
    Replay replay({script("one two three ENDING four", false)}, config);
    for (const bool include : {false, true}) {
      Client client;
      Request request = request_for(client, {0});
      request.sampling.stop = {"ENDINX", "END", "four"};
      request.sampling.include_stop_in_output = include;
      ASSERT_TRUE(replay.engine->submit(std::move(request)).has_value());
      const Client::Answer& answer = client.wait();
      EXPECT_EQ(answer.text, include ? "one two three END" : "one two three ");
      EXPECT_EQ(answer.last.finish, FinishReason::kStop);
      EXPECT_EQ(answer.last.stop_string, "END");
      EXPECT_EQ(answer.last.completion_tokens, 17);
      EXPECT_EQ(answer.tokens.size(), 17u);
      EXPECT_EQ(answer.after_end, 0);
    }
    expect_clean(*replay.engine);
  }
}

TEST(Engine, HeldBackTextComesOutAtTheEnd) {
  Replay replay({script("wait for the STO", false)});
  Client client;
  Request request = request_for(client, {0}, 16);
  request.sampling.stop = {"STOP"};
  ASSERT_TRUE(replay.engine->submit(std::move(request)).has_value());
  EXPECT_EQ(client.wait().text, "wait for the STO");
  EXPECT_EQ(client.wait().last.finish, FinishReason::kLength);
}

TEST(Engine, StopTokensAreNoText) {
  Replay replay({script("abcXdef")});
  for (const bool include : {false, true}) {
    Client client;
    Request request = request_for(client, {0});
    request.sampling.stop_token_ids = {'X'};
    request.sampling.include_stop_in_output = include;
    ASSERT_TRUE(replay.engine->submit(std::move(request)).has_value());
    const Client::Answer& answer = client.wait();
    EXPECT_EQ(answer.text, include ? "abcX" : "abc");
    EXPECT_EQ(answer.last.stop_token, 'X');
    EXPECT_EQ(answer.last.finish, FinishReason::kStop);
  }
  Client client;
  Request request = request_for(client, {0}, 12);
  request.sampling.ignore_eos = true;
  ASSERT_TRUE(replay.engine->submit(std::move(request)).has_value());
  EXPECT_EQ(client.wait().text, "abcXdefabcX");  // the script starts again after its end token
  EXPECT_EQ(client.wait().last.finish, FinishReason::kLength);
}

// A character is never cut, whatever runs beside it.
TEST(Engine, SixteenStreamsOfEmojiAtOnce) {
  const std::string text =
      "\xF0\x9F\x91\xA9\xF0\x9F\x8F\xBD\xE2\x80\x8D\xF0\x9F\x9A\x80 \xC4\x8F\xC3\xA1"
      "bel \xEC\x82\xBC\xEA\xB2\xB9\xEC\x82\xB4 \xE4\xB8\x96\xE7\x95\x8C e\xCC\x81";
  constexpr int kStreams = 16;
  std::vector<ReplayExecutor::Script> scripts;
  std::vector<std::string> texts;
  for (int i = 0; i < kStreams; ++i) {  // each starts elsewhere, so that no two are in step
    texts.push_back(std::string(static_cast<std::size_t>(i), 'x') + text);
    scripts.push_back(script(texts.back()));
  }
  EngineConfig config = small_config();
  config.scheduler.max_sequences = 16;
  config.scheduler.blocks = 16 * 16;
  Replay replay(std::move(scripts), config);
  std::vector<Client> clients(kStreams);
  for (int i = 0; i < kStreams; ++i) {
    ASSERT_TRUE(replay.engine->submit(request_for(clients[static_cast<std::size_t>(i)], {i})).has_value());
  }
  for (std::size_t i = 0; i < kStreams; ++i) {
    const Client::Answer& answer = clients[i].wait();
    EXPECT_EQ(answer.text, texts[i]);
    for (const std::string& piece : answer.pieces) {
      EXPECT_EQ(piece.find("\xEF\xBF\xBD"), std::string::npos);
      EXPECT_TRUE(piece.empty() || (static_cast<unsigned char>(piece[0]) & 0xC0) != 0x80)
          << "starts inside a character";
    }
  }
}

TEST(Engine, AnUnfinishedCharacterIsReplacedAtTheEnd) {
  Replay replay({script("ok \xF0\x9F\x9A", false)});
  Client client;
  ASSERT_TRUE(replay.engine->submit(request_for(client, {0}, 6)).has_value());
  EXPECT_EQ(client.wait().text, "ok \xEF\xBF\xBD");
}

// The first choice computes the prompt, the others find it in the cache; each draws for itself.
TEST(Engine, ChoicesShareThePrompt) {
  const EngineConfig config = small_config();
  Engine engine(config, null_executor(config), nullptr);
  std::vector<TokenId> prompt(50);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(i);
  Client client(3), alone;
  Request request = request_for(client, prompt, 20);
  request.choices = 3;
  request.sampling.temperature = 1;
  request.sampling.seed = 42;
  ASSERT_TRUE(engine.submit(std::move(request)).has_value());
  EXPECT_EQ(client.wait(0).last.cached_tokens, 0);
  EXPECT_EQ(client.wait(1).last.cached_tokens, 48);
  EXPECT_EQ(client.wait(2).last.cached_tokens, 48);
  EXPECT_NE(client.wait(0).tokens, client.wait(1).tokens);
  EXPECT_NE(client.wait(1).tokens, client.wait(2).tokens);
  EXPECT_EQ(client.wait(2).last.prompt_tokens, 50);
  Request again = request_for(alone, prompt, 20);
  again.sampling.temperature = 1;
  again.sampling.seed = 42;
  ASSERT_TRUE(engine.submit(std::move(again)).has_value());
  EXPECT_EQ(alone.wait().tokens, client.wait(0).tokens);
  expect_clean(engine);
}

TEST(Engine, RequestsWithoutASeedDiffer) {
  const EngineConfig config = small_config();
  Engine engine(config, null_executor(config), nullptr);
  Client first, second;
  for (Client* client : {&first, &second}) {
    Request request = request_for(*client, {1, 2, 3}, 20);
    request.sampling.temperature = 1;
    ASSERT_TRUE(engine.submit(std::move(request)).has_value());
  }
  EXPECT_NE(first.wait().tokens, second.wait().tokens);
}

TEST(Engine, RefusesAtOnceWhatCanNeverRun) {
  Replay replay({script("x")});
  const auto error_of = [&](auto change) {
    Client client;
    Request request = request_for(client, {0});
    change(request);
    Result<RequestId> result = replay.engine->submit(std::move(request));
    EXPECT_FALSE(result.has_value());
    return result ? Error{} : result.error();
  };
  EXPECT_EQ(error_of([](Request& r) { r.prompt = {}; }).code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of([](Request& r) { r.prompt = {257}; }).message, "token id 257 is outside the vocabulary of 257");
  EXPECT_EQ(error_of([](Request& r) { r.prompt = {-1}; }).code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of([](Request& r) { r.sampling.max_tokens = 0; }).code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of([](Request& r) { r.choices = 13; }).code, ErrorCode::kInvalid);
  EXPECT_EQ(error_of([](Request& r) { r.choices = 0; }).code, ErrorCode::kInvalid);
  const Error too_long = error_of([](Request& r) { r.prompt.assign(1500, 0); });
  EXPECT_EQ(too_long.code, ErrorCode::kInvalid);
  EXPECT_NE(too_long.message.find("1500"), std::string::npos) << too_long.message;
  EXPECT_NE(too_long.message.find("128"), std::string::npos) << too_long.message;
  EXPECT_EQ(replay.engine->stats().rejected, 7u);
  // And the next one is served at once.
  Client client;
  ASSERT_TRUE(replay.engine->submit(request_for(client, {0})).has_value());
  EXPECT_EQ(client.wait().text, "x");

  const EngineConfig config = small_config();
  Engine no_text(config, null_executor(config), nullptr);
  Request request = request_for(client, {0});
  request.sampling.stop = {"x"};
  EXPECT_EQ(no_text.submit(std::move(request)).error().code, ErrorCode::kInvalid);
}

TEST(Engine, QueueIsBounded) {
  EngineConfig config = small_config();
  config.scheduler.max_sequences = 1;
  config.scheduler.max_waiting = 2;
  Replay replay({script("abc")}, config);
  replay.executor->hold();
  std::vector<Client> clients(4);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(replay.engine->submit(request_for(clients[i], {0})).has_value());
  Result<RequestId> refused = replay.engine->submit(request_for(clients[3], {0}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  replay.executor->let_go();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(clients[i].wait().text, "abc");
  ASSERT_TRUE(replay.engine->submit(request_for(clients[3], {0})).has_value());
  EXPECT_EQ(clients[3].wait().text, "abc");
}

// cancel.everywhere: queued, in the prefill, between tokens, before the engine heard of it, among choices, after the
// end.
TEST(Engine, RequestsThatComeTogetherStartTogetherOrNotAtAll) {
  Replay replay({script("four")});
  const auto four_of = [](std::vector<Client>& clients) {
    std::vector<Request> requests;
    for (Client& client : clients) requests.push_back(request_for(client, {0}));
    return requests;
  };
  // Round after round, since a fault would be that the engine's thread comes in between.
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<Client> clients(4);
    const auto first = replay.engine->submit_all(four_of(clients));
    ASSERT_TRUE(first.has_value());
    for (std::size_t i = 0; i < clients.size(); ++i) {
      EXPECT_EQ(clients[i].wait().text, "four");
      EXPECT_EQ(clients[i].wait().last.request, *first + i);
    }
    ASSERT_EQ(replay.executor->submitted(), (round + 1) * 5);
  }

  std::vector<Client> clients(4);
  std::vector<Request> requests = four_of(clients);
  requests[2].prompt = {257};
  EXPECT_EQ(replay.engine->submit_all(std::move(requests)).error().code, ErrorCode::kInvalid);
  requests = four_of(clients);
  for (Request& request : requests) request.choices = 4;
  EXPECT_EQ(replay.engine->submit_all(std::move(requests)).error().message,
            "0 sequences are running and waiting, 4 more than 12 may: try again later");
  expect_clean(*replay.engine);
  EXPECT_EQ(replay.engine->stats().rejected, 8u);
}

TEST(Engine, CancelEverywhere) {
  EngineConfig config = small_config();
  config.scheduler.max_sequences = 1;
  Replay replay({script("a long answer that goes on"), script("short")}, config);
  Engine& engine = *replay.engine;
  for (int round = 0; round < 50; ++round) {
    Client running, queued, waiting;
    replay.executor->hold();
    const RequestId first = *engine.submit(request_for(running, {0}));
    const RequestId second = *engine.submit(request_for(queued, {0}));
    ASSERT_TRUE(engine.submit(request_for(waiting, {1})).has_value());
    replay.executor->permit(3);
    running.wait_for_outputs(2);
    engine.cancel(second);  // while queued: the one that runs does not notice
    engine.cancel(12345678);
    replay.executor->permit(2);
    running.wait_for_outputs(4);
    EXPECT_FALSE(running.ended());
    engine.cancel(first);  // between tokens
    engine.cancel(first);
    replay.executor->let_go();
    EXPECT_EQ(waiting.wait().text, "short");
    EXPECT_EQ(running.wait().last.finish, FinishReason::kAbort);
    EXPECT_GE(running.wait().last.completion_tokens, 4);
    EXPECT_EQ(queued.wait().last.finish, FinishReason::kAbort);
    EXPECT_EQ(queued.wait().last.completion_tokens, 0);
    engine.cancel(first);
    EXPECT_EQ(running.wait().after_end, 0);
    expect_clean(engine);
  }
  EXPECT_EQ(engine.stats().finished[2], 100u);
  EXPECT_EQ(engine.stats().finished[0], 50u);
}

TEST(Engine, CancelEndsALongPrefillInTheMiddleOfAStep) {
  EngineConfig config = small_config();
  Replay replay({script("abcdefgh"), script("xy")}, config, /*prompt_tokens=*/30);
  std::vector<TokenId> prompt(30, 5);
  Client decoding, gone, other;
  prompt[0] = 1;
  replay.executor->hold();
  const RequestId id = [&] {
    std::vector<TokenId> long_prompt = prompt;
    return *replay.engine->submit(request_for(gone, std::move(long_prompt)));
  }();
  replay.executor->wait_for_submitted(1);
  // No permit is given: the step can only end by being interrupted.
  replay.engine->cancel(id);
  EXPECT_EQ(gone.wait().last.finish, FinishReason::kAbort);
  EXPECT_EQ(replay.executor->interrupted(), 1u);
  replay.executor->let_go();
  ASSERT_TRUE(replay.engine->submit(request_for(other, prompt)).has_value());
  EXPECT_EQ(other.wait().text, "xy");
  expect_clean(*replay.engine);
}

TEST(Engine, CancelOfChoicesThatHaveNotStarted) {
  EngineConfig config = small_config();
  Engine engine(config, null_executor(config), nullptr);
  std::vector<TokenId> prompt(40, 3);
  for (int round = 0; round < 100; ++round) {
    Client client(4);
    Request request = request_for(client, prompt, 60);
    request.choices = 4;
    const RequestId id = *engine.submit(std::move(request));
    if (round % 2 == 0) client.wait_for_outputs(1 + round % 5);
    engine.cancel(id);
    for (int choice = 0; choice < 4; ++choice) {
      EXPECT_EQ(client.wait(choice).after_end, 0);
      EXPECT_NE(client.wait(choice).last.finish, FinishReason::kNone);
    }
  }
  expect_clean(engine);
}

// one.bad.request: a sink that throws ends its own request and no other.
TEST(Engine, OneBadRequestLeavesTheOthersAlone) {
  Replay replay({script("the right answer")});
  Client before, after;
  ASSERT_TRUE(replay.engine->submit(request_for(before, {0})).has_value());
  std::atomic<int> calls = 0;
  for (int i = 0; i < 6; ++i) {
    Client unused;
    Request bad = request_for(unused, {0});
    bad.sink = [&calls](Output&&) {
      ++calls;
      throw std::runtime_error("the client's fault");
    };
    ASSERT_TRUE(replay.engine->submit(std::move(bad)).has_value());
  }
  ASSERT_TRUE(replay.engine->submit(request_for(after, {0})).has_value());
  EXPECT_EQ(before.wait().text, "the right answer");
  EXPECT_EQ(after.wait().text, "the right answer");
  expect_clean(*replay.engine);
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(replay.engine->stats().finished[3], 6u);
}

TEST(Engine, DrainLetsRunningOnesEndAndNobodyIn) {
  Replay replay({script("abcdef")});
  std::vector<Client> clients(6);
  for (Client& client : clients) ASSERT_TRUE(replay.engine->submit(request_for(client, {0})).has_value());
  replay.engine->drain(kForever);
  for (Client& client : clients) {
    EXPECT_TRUE(client.ended());
    EXPECT_EQ(client.wait().text, "abcdef");
  }
  Client late;
  EXPECT_EQ(replay.engine->submit(request_for(late, {0})).error().code, ErrorCode::kExhausted);
}

TEST(Engine, DrainGivesUpAtItsDeadlineAndTheEndAbortsWhatIsLeft) {
  Client client, queued;
  {
    EngineConfig config = small_config();
    config.scheduler.max_sequences = 1;
    Replay replay({script("abcdef")}, config);
    replay.executor->hold();
    ASSERT_TRUE(replay.engine->submit(request_for(client, {0})).has_value());
    ASSERT_TRUE(replay.engine->submit(request_for(queued, {0})).has_value());
    replay.engine->drain(SteadyClock::instance().now_ns() + 20'000'000);
    EXPECT_FALSE(client.ended());
  }
  EXPECT_EQ(client.wait().last.finish, FinishReason::kAbort);
  EXPECT_EQ(queued.wait().last.finish, FinishReason::kAbort);
}

// Many threads come, stay, leave in the middle; every answer is the one its prompt has alone.
TEST(Engine, ManyThreadsSubmitAndCancel) {
  for (const int steps_in_flight : {1, 2}) {
    EngineConfig config = small_config();
    config.steps_in_flight = steps_in_flight;
    config.scheduler.max_waiting = 4;
    Engine engine(config, null_executor(config), nullptr);
    std::atomic<int> answered = 0, aborted = 0, refused = 0;
    const auto client_thread = [&](std::uint64_t seed) {
      std::mt19937_64 random(seed);
      for (int round = 0; round < 60; ++round) {
        std::vector<TokenId> prompt(1 + random() % 60);
        for (TokenId& id : prompt) id = static_cast<TokenId>(random() % 3);
        const ops::SamplingRow sampling{.temperature = 1.0f, .seed = random()};
        const auto count = static_cast<std::int32_t>(1 + random() % 30);
        Client client;
        Request request = request_for(client, prompt, count);
        request.sampling.temperature = 1;
        request.sampling.seed = sampling.seed;
        Result<RequestId> id = engine.submit(std::move(request));
        if (!id) {
          EXPECT_EQ(id.error().code, ErrorCode::kExhausted);
          ++refused;
          std::this_thread::yield();
          continue;
        }
        if (random() % 3 == 0) {
          if (random() % 2 == 0) client.wait_for_outputs(1);
          engine.cancel(*id);
        }
        const Client::Answer& answer = client.wait();
        const auto expected =
            NullExecutor::expected_tokens(prompt, sampling, config.vocabulary_size, answer.tokens.size());
        EXPECT_EQ(answer.tokens, expected);
        EXPECT_EQ(answer.after_end, 0);
        EXPECT_EQ(static_cast<std::size_t>(answer.last.completion_tokens), answer.tokens.size());
        if (answer.last.finish == FinishReason::kAbort) {
          ++aborted;
        } else {
          EXPECT_EQ(answer.last.finish, FinishReason::kLength);
          EXPECT_EQ(answer.tokens.size(), static_cast<std::size_t>(count));
          ++answered;
        }
      }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 10; ++i) threads.emplace_back(client_thread, i + 1);
    for (std::thread& thread : threads) thread.join();
    expect_clean(engine);
    EXPECT_EQ(answered + aborted + refused, 600);
    EXPECT_GT(answered, 100);
    EXPECT_GT(aborted, 10);
    const EngineStats stats = engine.stats();
    EXPECT_EQ(stats.finished[1], static_cast<std::uint64_t>(answered));
    EXPECT_EQ(stats.finished[2], static_cast<std::uint64_t>(aborted));
    EXPECT_EQ(stats.rejected, static_cast<std::uint64_t>(refused));
  }
}

}  // namespace
}  // namespace octet::engine
