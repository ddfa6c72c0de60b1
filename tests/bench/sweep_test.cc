#include "octet/bench/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octet::bench {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// A server whose first token takes 10 ms for each request at once.
Run run_under(const Load& load) {
  bench::Run run{.concurrency = load.concurrency, .request_rate = load.request_rate, .duration_ns = 1000 * kMs};
  const double ms = load.concurrency > 0 ? 10.0 * load.concurrency : 10 * load.request_rate;
  RequestRecord record{.ended_ns = 500 * kMs, .outcome = Outcome::kCompleted, .output_tokens = 1};
  record.arrivals = {{.ns = static_cast<std::int64_t>(ms * kMs), .tokens = 1}};
  run.records = {record};
  return run;
}

std::vector<std::int32_t> measured(const Report& report, std::size_t target = 0) {
  std::vector<std::int32_t> out;
  for (const Point& point : report.targets[target].points) out.push_back(point.concurrency);
  return out;
}

SweepOptions options_of(std::vector<std::int32_t> list) {
  SweepOptions options;
  for (const std::int32_t one : list) options.loads.push_back({.concurrency = one});
  options.slo = {{.metric = "ttft", .percentile = 90, .limit_ms = 110}};
  return options;
}

TEST(Sweep, EndsAtTheFirstLoadOutside) {
  Report report{.targets = {Target{}}};
  const auto measure = [](std::size_t, const Load& load, std::int32_t) -> Result<bench::Run> {
    return run_under(load);
  };
  ASSERT_TRUE(sweep(options_of({1, 4, 8, 16, 32}), {}, measure, {}, report));
  EXPECT_EQ(measured(report), (std::vector<std::int32_t>{1, 4, 8, 16}));
}

TEST(Sweep, BisectsToTheLastLoadInside) {
  Report report{.targets = {Target{}}};
  SweepOptions options = options_of({1, 8, 16});
  options.bisect = true;
  const auto measure = [](std::size_t, const Load& load, std::int32_t) -> Result<bench::Run> {
    return run_under(load);
  };
  ASSERT_TRUE(sweep(options, {}, measure, {}, report));
  EXPECT_EQ(measured(report), (std::vector<std::int32_t>{1, 8, 10, 11, 12, 16}));
  Report rates{.targets = {Target{}}};
  options.loads = {{.request_rate = 4}, {.request_rate = 16}};
  ASSERT_TRUE(sweep(options, {}, measure, {}, rates));
  const auto& points = rates.targets[0].points;
  const auto last = std::ranges::find_if(points, [](const Point& one) { return one.request_rate > 11; });
  EXPECT_LT(last->request_rate / (last - 1)->request_rate, 1.06);
}

TEST(Sweep, ALoadIsInsideWhereEveryRepeatIs) {
  Report report{.targets = {Target{}}};
  SweepOptions options = options_of({1, 2, 4});
  options.repeats = 3;
  const auto measure = [](std::size_t, const Load& load, std::int32_t repeat) -> Result<bench::Run> {
    return run_under(load.concurrency == 2 && repeat == 1 ? Load{.concurrency = 100} : load);
  };
  ASSERT_TRUE(sweep(options, {}, measure, {}, report));
  EXPECT_EQ(measured(report), (std::vector<std::int32_t>{1, 2}));
}

TEST(Sweep, TargetsTakeTurns) {
  Report report{.targets = {Target{.name = "a"}, Target{.name = "b"}}};
  SweepOptions options = options_of({1});
  options.repeats = 2;
  std::vector<std::pair<std::size_t, std::int32_t>> order;
  const auto measure = [&](std::size_t target, const Load& load, std::int32_t repeat) -> Result<bench::Run> {
    order.emplace_back(target, repeat);
    return run_under(load);
  };
  ASSERT_TRUE(sweep(options, {}, measure, {}, report));
  EXPECT_EQ(order, (std::vector<std::pair<std::size_t, std::int32_t>>{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(report.targets[1].points[0].summaries.size(), 2U);
}

TEST(Sweep, KeepsWhatWasMeasuredBeforeAnErrorOrAnInterrupt) {
  Report report{.targets = {Target{}}};
  const auto fails = [](std::size_t, const Load& load, std::int32_t) -> Result<bench::Run> {
    if (load.concurrency == 4) return fail(ErrorCode::kIo, "gone");
    return run_under(load);
  };
  const auto done = sweep(options_of({1, 4, 8}), {}, fails, {}, report);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "gone");
  EXPECT_EQ(measured(report), (std::vector<std::int32_t>{1}));
  Report cut{.targets = {Target{}}};
  const auto stops = [](std::size_t, const Load& load, std::int32_t) -> Result<bench::Run> {
    bench::Run run = run_under(load);
    run.interrupted = load.concurrency == 4;
    return run;
  };
  ASSERT_TRUE(sweep(options_of({1, 4, 8}), {}, stops, {}, cut));
  EXPECT_EQ(measured(cut), (std::vector<std::int32_t>{1, 4}));
}

TEST(Sweep, ListsOfConcurrency) {
  using List = std::vector<std::int32_t>;
  EXPECT_EQ(*parse_concurrency("1,2,4,...,64"), (List{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(*parse_concurrency("1, 2, 4, \u2026, 48"), (List{1, 2, 4, 8, 16, 32, 48}));
  EXPECT_EQ(*parse_concurrency("10,25,...,60"), (List{10, 25, 40, 55, 60}));
  EXPECT_EQ(*parse_concurrency("3"), List{3});
  for (const char* text : {"", "0", "2,1", "1,...,8", "1,2,...", "1,2,...,...,8", "a", "1,,2", "-1"}) {
    const auto list = parse_concurrency(text);
    ASSERT_FALSE(list) << text;
    EXPECT_TRUE(list.error().message.starts_with("--concurrency")) << list.error().message;
  }
}

TEST(Sweep, RatesAndLimits) {
  EXPECT_EQ(*parse_request_rates("1,2.5,inf"), (std::vector<double>{1, 2.5, 0}));
  for (const char* text : {"0", "x", "1,", "-2"}) EXPECT_FALSE(parse_request_rates(text)) << text;
  const auto limits = parse_slo("ttft:p90=2s, tpot:p99.9=50ms,e2el:p50=7");
  ASSERT_TRUE(limits);
  EXPECT_DOUBLE_EQ((*limits)[0].limit_ms, 2000);
  EXPECT_DOUBLE_EQ((*limits)[1].percentile, 99.9);
  EXPECT_DOUBLE_EQ((*limits)[2].limit_ms, 7);
  for (const char* text :
       {"ttft=5", "ttft:p90", "nope:p90=5", "ttft:p0=5", "ttft:p101=5", "ttft:p90=-1", "ttft:p90=ms"})
    EXPECT_FALSE(parse_slo(text)) << text;
  const std::string words[] = {"ttft:100", "tpot:5.5"}, wrong[] = {"ttft"};
  EXPECT_DOUBLE_EQ((*parse_goodput(words))[1].limit_ms, 5.5);
  EXPECT_FALSE(parse_goodput(wrong));
}

}  // namespace
}  // namespace octet::bench
