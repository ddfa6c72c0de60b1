#include "octet/bench/summary.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace octet::bench {
namespace {

constexpr double kNsPerMs = 1e6, kNsPerS = 1e9;
// The client itself shapes the figures where it is busy most of the time, or late by more than a person would accept
// as noise of a measurement in milliseconds.
constexpr double kBusyShare = 0.8;
constexpr std::int64_t kLateNs = 10'000'000;

double ms(std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) / kNsPerMs; }

const Distribution* distribution_of(const Summary& summary, std::string_view metric) {
  if (metric == "ttft") return &summary.ttft;
  if (metric == "tpot") return &summary.tpot;
  if (metric == "itl") return &summary.itl;
  if (metric == "e2el") return &summary.e2el;
  if (metric == "first_answer") return &summary.first_answer;
  return nullptr;
}

// Each limit holds for the request by itself; a time that it does not have (TPOT of one token) breaks none.
bool is_good(const RequestTimes& times, std::span<const SloLimit> limits) {
  return std::ranges::all_of(limits, [&](const SloLimit& limit) {
    if (limit.metric == "itl") return std::ranges::all_of(times.itl, [&](double one) { return one <= limit.limit_ms; });
    const std::optional<double>& time = limit.metric == "ttft"   ? times.ttft
                                        : limit.metric == "tpot" ? times.tpot
                                        : limit.metric == "e2el" ? times.e2el
                                                                 : times.first_answer;
    return !time || *time <= limit.limit_ms;
  });
}

struct Samples {
  std::vector<double> ttft, first_answer, tpot, itl, e2el;

  void add(RequestTimes&& times) {
    if (times.ttft) ttft.push_back(*times.ttft);
    if (times.first_answer) first_answer.push_back(*times.first_answer);
    if (times.tpot) tpot.push_back(*times.tpot);
    if (times.e2el) e2el.push_back(*times.e2el);
    itl.insert(itl.end(), times.itl.begin(), times.itl.end());
  }
};

std::int32_t most_at_once(const Run& run) {
  std::vector<std::pair<std::int64_t, int>> changes;  // ends before begins of the same moment
  for (const RequestRecord& record : run.records) {
    changes.emplace_back(record.sent_ns, 1);
    changes.emplace_back(record.ended_ns, -1);
  }
  std::ranges::sort(changes);
  std::int32_t now = 0, most = 0;
  for (const auto& [ns, change] : changes) most = std::max(most, now += change);
  return most;
}

double best_second(const Run& run) {
  std::map<std::int64_t, std::int64_t> tokens;  // by second from the start
  for (const RequestRecord& record : run.records) {
    for (const Arrival& arrival : record.arrivals) tokens[arrival.ns / 1'000'000'000] += arrival.tokens;
  }
  std::int64_t most = 0;
  for (const auto& [second, count] : tokens) most = std::max(most, count);
  return static_cast<double>(most);
}

}  // namespace

RequestTimes request_times(const RequestRecord& record) {
  RequestTimes times;
  if (record.outcome != Outcome::kCompleted) return times;
  times.e2el = ms(record.planned_ns, record.ended_ns);
  if (record.arrivals.empty()) return times;
  const std::int64_t first = record.arrivals.front().ns, last = record.arrivals.back().ns;
  times.ttft = ms(record.planned_ns, first);
  if (record.first_answer_ns >= 0) times.first_answer = ms(record.planned_ns, record.first_answer_ns);
  if (last == first) return times;  // all at once: nothing tells how long a token took
  if (record.output_tokens > 1) times.tpot = ms(first, last) / (record.output_tokens - 1);
  std::int64_t before = first;
  for (const Arrival& arrival : std::span(record.arrivals).subspan(1)) {
    if (arrival.tokens == 0) continue;  // its time goes to the next
    times.itl.insert(times.itl.end(), static_cast<std::size_t>(arrival.tokens),
                     ms(before, arrival.ns) / arrival.tokens);
    before = arrival.ns;
  }
  return times;
}

Summary summarize(const Run& run, std::span<const SloLimit> goodput) {
  Summary out;
  Samples samples;
  std::int64_t good = 0;
  for (const RequestRecord& record : run.records) {
    if (record.outcome == Outcome::kCut) ++out.cut;
    if (record.outcome == Outcome::kFailed) {
      ++out.failed;
      ++out.errors[record.error];
    }
    if (record.outcome != Outcome::kCompleted) continue;
    ++out.completed;
    out.input_tokens += record.input_tokens;
    out.output_tokens += record.output_tokens;
    out.cached_tokens += std::max(record.cached_tokens, 0);
    out.usage_missing |= record.token_source != TokenSource::kUsage;
    RequestTimes times = request_times(record);
    if (is_good(times, goodput)) ++good;
    samples.add(std::move(times));
  }
  out.duration_s = static_cast<double>(run.duration_ns) / kNsPerS;
  if (out.duration_s > 0) {
    out.request_throughput = static_cast<double>(out.completed) / out.duration_s;
    out.output_throughput = static_cast<double>(out.output_tokens) / out.duration_s;
    out.total_token_throughput = static_cast<double>(out.input_tokens + out.output_tokens) / out.duration_s;
    if (!goodput.empty()) out.request_goodput = static_cast<double>(good) / out.duration_s;
  }
  out.max_output_tokens_per_s = best_second(run);
  out.max_concurrent_requests = most_at_once(run);
  out.ttft = distribution(std::move(samples.ttft));
  out.first_answer = distribution(std::move(samples.first_answer));
  out.tpot = distribution(std::move(samples.tpot));
  out.itl = distribution(std::move(samples.itl));
  out.e2el = distribution(std::move(samples.e2el));
  out.client_bound =
      run.client.cpu_share > kBusyShare || run.client.send_lag_p99_ns > kLateNs || run.client.loop_lag_p99_ns > kLateNs;
  return out;
}

bool within(const Summary& summary, std::span<const SloLimit> limits, std::string* violation) {
  const auto broken = [&](std::string what) {
    if (violation != nullptr) *violation = std::move(what);
    return false;
  };
  if (summary.completed == 0) return broken("no request was completed");
  for (const SloLimit& limit : limits) {
    const Distribution* of = distribution_of(summary, limit.metric);
    if (of == nullptr || of->count == 0) continue;
    const double value = of->percentile(limit.percentile);
    if (value > limit.limit_ms)
      return broken(
          fmt::format("{} p{:g} is {:.1f} ms, over {:g} ms", limit.metric, limit.percentile, value, limit.limit_ms));
  }
  return true;
}

}  // namespace octet::bench
