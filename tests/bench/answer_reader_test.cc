// Answers as they come in, on a clock of the test's own.
#include "octet/bench/answer_reader.h"

#include <gtest/gtest.h>

#include "octet/bench/summary.h"
#include "tests/support/byte_tokenizer.h"

namespace octet::bench {
namespace {

constexpr std::int64_t kMs = 1'000'000;

std::string event(std::string_view json) { return fmt::format("data: {}\n\n", json); }
std::string delta(std::string_view inner, std::string_view more = "") {
  return event(fmt::format(R"({{"choices":[{{"index":0,"delta":{{{}}}}}]{}}})", inner, more));
}
std::string piece(std::string_view text, std::string_view more = "") {
  return event(fmt::format(R"({{"choices":[{{"index":0,"text":"{}"}}]{}}})", text, more));
}
std::string usage(int prompt, int completion) {
  return event(
      fmt::format(R"({{"choices":[],"usage":{{"prompt_tokens":{},"completion_tokens":{}}}}})", prompt, completion));
}
const std::string kStop = event(R"({"choices":[{"index":0,"delta":{},"text":"","finish_reason":"stop"}]})");
const std::string kDone = "data: [DONE]\n\n";

struct Feed {
  std::int64_t ms;
  std::string bytes;
};

RequestRecord read(Api api, const std::vector<Feed>& feeds, std::int64_t end_ms,
                   const text::Tokenizer* tokenizer = nullptr) {
  AnswerReader reader(api, true, tokenizer);
  reader.status(200);
  for (const Feed& feed : feeds) reader.bytes(feed.ms * kMs, feed.bytes);
  RequestRecord record;
  reader.finish(end_ms * kMs, record);
  return record;
}

std::vector<std::pair<std::int64_t, int>> arrivals(const RequestRecord& record) {
  std::vector<std::pair<std::int64_t, int>> out;
  for (const Arrival& one : record.arrivals) out.emplace_back(one.ns / kMs, one.tokens);
  return out;
}
using Pairs = std::vector<std::pair<std::int64_t, int>>;

// BEN-01 of the black-box cases.
std::vector<Feed> reasoning_answer() {
  return {{50, delta(R"("role":"assistant","content":"")")},
          {80, ": ping\n\n"},
          {100, delta(R"("reasoning_content":"a")")},
          {200, delta(R"("reasoning_content":"b")")},
          {300, delta(R"("reasoning_content":"c")")},
          {310, ": ping\n\n"},
          {400, delta(R"("content":"d")")},
          {500, delta(R"("content":"e")")},
          {505, kStop},
          {506, usage(7, 5)},
          {510, kDone}};
}

void expect_reasoning_answer(const RequestRecord& record) {
  ASSERT_EQ(record.outcome, Outcome::kCompleted) << record.error;
  EXPECT_EQ(record.output_tokens, 5);
  EXPECT_EQ(record.input_tokens, 7);
  EXPECT_EQ(record.token_source, TokenSource::kUsage);
  const RequestTimes times = request_times(record);
  EXPECT_DOUBLE_EQ(*times.ttft, 100);
  EXPECT_DOUBLE_EQ(*times.first_answer, 400);
  EXPECT_DOUBLE_EQ(*times.tpot, 100);
  EXPECT_DOUBLE_EQ(*times.e2el, 510);
  EXPECT_EQ(times.itl, std::vector<double>(4, 100.0));
}

TEST(Ben01, TheFirstTokenIsTheFirstOfAnyKind) { expect_reasoning_answer(read(Api::kChat, reasoning_answer(), 510)); }

TEST(Ben01, FramesSplitAnywhereChangeNothing) {
  for (const std::size_t at : {1U, 5U, 6U, 20U, 40U}) {
    std::vector<Feed> feeds;
    for (const Feed& feed : reasoning_answer()) {
      const std::size_t cut = std::min(at, feed.bytes.size() - 1);
      // The first part comes early: what counts is when a frame is whole.
      feeds.push_back({feed.ms - 1, feed.bytes.substr(0, cut)});
      feeds.push_back({feed.ms, feed.bytes.substr(cut)});
    }
    expect_reasoning_answer(read(Api::kChat, feeds, 510));
  }
}

TEST(Ben01, FramesOfOnePacketComeAtOnce) {
  const RequestRecord record =
      read(Api::kChat,
           {{100, delta(R"("content":"a")")},
            {300, delta(R"("content":"b")") + delta(R"("content":"c")") + kStop + usage(1, 3) + kDone}},
           300);
  EXPECT_EQ(arrivals(record), (Pairs{{100, 1}, {300, 2}}));
  const RequestTimes times = request_times(record);
  EXPECT_EQ(times.itl, (std::vector<double>{100, 100}));
  EXPECT_DOUBLE_EQ(*times.tpot, 100);
}

TEST(AnswerReader, CarriageReturnsAndSeveralDataLinesAreOneEvent) {
  const RequestRecord record = read(
      Api::kCompletions,
      {{10, "event: x\r\nid: 3\r\ndata: {\"choices\":[{\"text\":\"a\",\r\ndata: \"finish_reason\":\"stop\"}]}\r\n\r\n"},
       {20, "data: [DONE]"}},  // without its end
      20);
  EXPECT_EQ(record.outcome, Outcome::kCompleted);
  EXPECT_EQ(arrivals(record), (Pairs{{10, 1}}));
  EXPECT_EQ(record.token_source, TokenSource::kChunks);
}

TEST(AnswerReader, UsageIsSharedOutOverBundledChunks) {
  const RequestRecord record =
      read(Api::kCompletions,
           {{10, piece("abc")}, {20, piece("def")}, {30, piece("g")}, {31, kStop + usage(1, 9) + kDone}}, 31);
  EXPECT_EQ(arrivals(record), (Pairs{{10, 3}, {20, 3}, {30, 3}}));
  EXPECT_EQ(request_times(record).itl.size(), 6U);
  EXPECT_DOUBLE_EQ(request_times(record).itl[0], 10.0 / 3);
  EXPECT_DOUBLE_EQ(*request_times(record).tpot, 20.0 / 8);
}

TEST(AnswerReader, UsageOfEachChunkSaysWhatItBrought) {
  const auto with = [](int so_far) {
    return fmt::format(R"(,"usage":{{"prompt_tokens":1,"completion_tokens":{}}})", so_far);
  };
  const RequestRecord record =
      read(Api::kCompletions,
           {{10, piece("a", with(1))}, {20, piece("bcde", with(5))}, {30, piece("f", with(6)) + kStop + kDone}}, 30);
  EXPECT_EQ(arrivals(record), (Pairs{{10, 1}, {20, 4}, {30, 1}}));
}

TEST(AnswerReader, ListedTokensSayWhatAChunkBrought) {
  const RequestRecord record =
      read(Api::kCompletions,
           {{10, event(R"({"choices":[{"text":"ab","token_ids":[1,2]}]})")},
            {20, event(R"({"choices":[{"text":"c","logprobs":{"tokens":["c"]}}]})")},
            {30, event(R"({"choices":[{"text":"","token_ids":[4]}]})")},  // part of a character
            {31, kStop + usage(1, 4) + kDone}},
           31);
  EXPECT_EQ(arrivals(record), (Pairs{{10, 2}, {20, 1}, {30, 1}}));
}

TEST(AnswerReader, PartsOfToolCallsAreTokens) {
  const RequestRecord record = read(
      Api::kChat,
      {{10, delta(R"("tool_calls":[{"index":0,"function":{"arguments":"{"}}])")}, {20, kStop + usage(1, 1) + kDone}},
      20);
  EXPECT_EQ(arrivals(record), (Pairs{{10, 1}}));
  EXPECT_EQ(record.first_answer_ns, 10 * kMs);
}

TEST(AnswerReader, WithoutUsageTheTokenizerCountsAndElseChunksDo) {
  const std::vector<Feed> feeds = {{10, piece("abcd")}, {20, piece("ef")}, {21, kStop + kDone}};
  const auto tokenizer = octet::testing::make_byte_tokenizer();
  const RequestRecord counted = read(Api::kCompletions, feeds, 21, tokenizer.get());
  EXPECT_EQ(counted.token_source, TokenSource::kTokenizer);
  EXPECT_EQ(counted.output_tokens, 6);
  EXPECT_EQ(arrivals(counted), (Pairs{{10, 3}, {20, 3}}));
  const RequestRecord chunks = read(Api::kCompletions, feeds, 21);
  EXPECT_EQ(chunks.token_source, TokenSource::kChunks);
  EXPECT_EQ(chunks.output_tokens, 2);
}

TEST(AnswerReader, AnEmptyAnswerHasNoFirstToken) {
  const RequestRecord record = read(Api::kChat, {{5, delta(R"("role":"assistant")") + kStop + usage(3, 0) + kDone}}, 6);
  EXPECT_EQ(record.outcome, Outcome::kCompleted);
  const RequestTimes times = request_times(record);
  EXPECT_FALSE(times.ttft || times.tpot || times.first_answer);
  EXPECT_TRUE(times.itl.empty());
  EXPECT_DOUBLE_EQ(*times.e2el, 6);
}

TEST(AnswerReader, OneTokenHasNoTimePerToken) {
  const RequestRecord record = read(Api::kCompletions, {{5, piece("a") + kStop + usage(3, 1) + kDone}}, 6);
  EXPECT_DOUBLE_EQ(*request_times(record).ttft, 5);
  EXPECT_FALSE(request_times(record).tpot);
}

void expect_failed(const RequestRecord& record, std::string_view reason) {
  EXPECT_EQ(record.outcome, Outcome::kFailed);
  EXPECT_NE(record.error.find(reason), std::string::npos) << record.error;
  EXPECT_FALSE(request_times(record).e2el || request_times(record).ttft);
}

TEST(AnswerReader, WhatIsNoAnswerHasFailedWithItsTimeAndReason) {
  const RequestRecord half = read(Api::kCompletions, {{5, piece("a")}}, 9);
  expect_failed(half, "the stream ended without a finish");
  EXPECT_EQ(half.ended_ns, 9 * kMs);
  EXPECT_EQ(half.arrivals.size(), 1U);
  expect_failed(read(Api::kCompletions, {{5, piece("a") + "data: {\"choi\n\n" + kDone}}, 9), "broken chunk");
  expect_failed(
      read(Api::kCompletions, {{5, piece("a") + event(R"({"error":{"message":"out of memory","code":500}})")}}, 9),
      "error in the stream: out of memory");
  expect_failed(read(Api::kCompletions, {}, 9), "without a finish");
}

TEST(AnswerReader, AServerThatClaimsTooMuchIsNotBelieved) {
  std::vector<Feed> feeds;
  for (int i = 0; i < 6; ++i) {
    const int claimed = i % 2 == 0 ? 2'000'000'000 : 0;
    feeds.push_back({10 + i, piece("a", fmt::format(R"(,"usage":{{"completion_tokens":{}}})", claimed))});
  }
  feeds.push_back({20, kStop + usage(2'000'000'000, 2'000'000'000) + kDone});
  const RequestRecord record = read(Api::kCompletions, feeds, 21);
  EXPECT_EQ(record.output_tokens, 10'000'000);
  EXPECT_LE(request_times(record).itl.size(), 10'000'000U);
}

TEST(AnswerReader, AFinishWithoutDoneIsEnough) {
  EXPECT_EQ(read(Api::kCompletions, {{5, piece("a") + kStop}}, 9).outcome, Outcome::kCompleted);
}

TEST(AnswerReader, AStatusIsAFailureWithTheServersWords) {
  for (const auto& [body, words] :
       {std::pair{R"({"error":{"message":"no room","type":"x"}})", "HTTP 503: no room"},
        std::pair{R"({"detail":"not you"})", "HTTP 503: not you"}, std::pair{R"({"error":"plain"})", "HTTP 503: plain"},
        std::pair{"<html>\nno</html>", "HTTP 503: <html> no</html>"}}) {
    AnswerReader reader(Api::kChat, true);
    reader.status(503);
    reader.bytes(kMs, body);
    RequestRecord record;
    reader.finish(2 * kMs, record);
    expect_failed(record, words);
    EXPECT_EQ(record.status, 503);
  }
}

TEST(AnswerReader, AWholeAnswerHasNoFirstToken) {
  AnswerReader reader(Api::kChat, false);
  reader.status(200);
  const std::string body =
      R"({"choices":[{"message":{"content":"hi","reasoning_content":"h"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":1}}})";
  reader.bytes(kMs, body.substr(0, 30));
  reader.bytes(2 * kMs, body.substr(30));
  RequestRecord record;
  reader.finish(3 * kMs, record);
  EXPECT_EQ(record.outcome, Outcome::kCompleted) << record.error;
  EXPECT_EQ(record.output_tokens, 4);
  EXPECT_EQ(record.cached_tokens, 1);
  EXPECT_EQ(reader.take_text(), "hi");
  EXPECT_FALSE(request_times(record).ttft);
  EXPECT_DOUBLE_EQ(*request_times(record).e2el, 3);
}

TEST(AnswerReader, WhatIsCutIsNoFailure) {
  AnswerReader reader(Api::kChat, true);
  reader.status(200);
  reader.bytes(kMs, delta(R"("content":"a")"));
  RequestRecord record;
  reader.fail(2 * kMs, "", record);
  EXPECT_EQ(record.outcome, Outcome::kCut);
  EXPECT_EQ(record.error, "");
}

}  // namespace
}  // namespace octet::bench
