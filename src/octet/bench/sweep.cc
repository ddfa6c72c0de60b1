#include "octet/bench/sweep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "octet/base/parse.h"

namespace octet::bench {
namespace {

constexpr int kBisections = 6;
constexpr double kCloseRates = 1.05;  // loads as near to each other are one

bool is_known(std::string_view metric) {
  return metric == "ttft" || metric == "tpot" || metric == "itl" || metric == "e2el" || metric == "first_answer";
}

// Goes on from the last two numbers up to `last`.
void go_on(std::vector<std::int32_t>& list, std::int32_t last) {
  const std::int64_t first = list[list.size() - 2], second = list.back();
  const bool by_factor = second % first == 0 && second / first >= 2;
  for (std::int64_t next = second;;) {
    next = by_factor ? next * (second / first) : next + (second - first);
    if (next >= last) break;
    list.push_back(static_cast<std::int32_t>(next));
  }
  list.push_back(last);
}

// As reports have it: in every repeat.
bool is_inside(const Point& point, std::span<const SloLimit> slo) {
  return std::ranges::all_of(point.summaries, [&](const Summary& one) { return within(one, slo); });
}

std::optional<Load> between(const Load& inside, const Load& outside) {
  if (outside.concurrency > 0) {
    const std::int32_t middle = inside.concurrency + (outside.concurrency - inside.concurrency) / 2;
    if (middle == inside.concurrency) return std::nullopt;
    return Load{.concurrency = middle, .request_rate = inside.request_rate};
  }
  if (!(outside.request_rate > inside.request_rate * kCloseRates) || inside.request_rate <= 0) return std::nullopt;
  return Load{.request_rate = std::sqrt(inside.request_rate * outside.request_rate)};
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, std::span<const SloLimit> goodput, const Measure& measure, const OnPoint& on_point,
        Report& report)
      : options_(options), goodput_(goodput), measure_(measure), on_point_(on_point), report_(report) {}

  Result<> run();

 private:
  Result<bool> measure_point(const Load& load, bool& inside);
  Result<> look_between(Load inside, Load outside);

  const SweepOptions& options_;
  std::span<const SloLimit> goodput_;
  const Measure& measure_;
  const OnPoint& on_point_;
  Report& report_;
};

// False: interrupted. inside: of any target.
Result<bool> Sweep::measure_point(const Load& load, bool& inside) {
  std::vector<Point> points(report_.targets.size(),
                            Point{.concurrency = load.concurrency, .request_rate = load.request_rate});
  bool goes_on = true;
  std::optional<Error> error;
  for (std::int32_t repeat = 0; repeat < options_.repeats && goes_on && !error; ++repeat) {
    for (std::size_t target = 0; target < points.size() && goes_on && !error; ++target) {
      auto run = measure_(target, load, repeat);
      if (!run) {
        error = run.error();
        break;
      }
      goes_on = !run->interrupted;
      points[target].summaries.push_back(summarize(*run, goodput_));
      points[target].runs.push_back(*std::move(run));
    }
  }
  inside = false;
  for (std::size_t target = 0; target < points.size(); ++target) {
    if (points[target].runs.empty()) continue;
    inside |= is_inside(points[target], options_.slo);
    if (on_point_) on_point_(target, points[target]);
    report_.targets[target].points.push_back(std::move(points[target]));
  }
  if (error) return std::unexpected(*std::move(error));
  return goes_on;
}

Result<> Sweep::look_between(Load inside, Load outside) {
  for (int i = 0; i < kBisections; ++i) {
    const std::optional<Load> middle = between(inside, outside);
    if (!middle) return {};
    bool is_good = false;
    OCTET_TRY(const bool goes_on, measure_point(*middle, is_good));
    if (!goes_on) return {};
    (is_good ? inside : outside) = *middle;
  }
  return {};
}

Result<> Sweep::run() {
  std::optional<Load> last_inside;
  for (const Load& load : options_.loads) {
    bool inside = false;
    OCTET_TRY(const bool goes_on, measure_point(load, inside));
    if (!goes_on) return {};
    if (!inside && !options_.slo.empty()) {
      if (options_.bisect && last_inside) OCTET_TRY_VOID(look_between(*last_inside, load));
      break;
    }
    last_inside = load;
  }
  for (Target& target : report_.targets) {
    std::ranges::sort(target.points, [](const Point& a, const Point& b) {
      return std::pair(a.concurrency, a.request_rate) < std::pair(b.concurrency, b.request_rate);
    });
  }
  return {};
}

}  // namespace

Result<std::vector<std::int32_t>> parse_concurrency(std::string_view text) {
  std::vector<std::int32_t> list;
  bool open = false;
  for (const std::string_view part : split_commas(text)) {
    if (part == "..." || part == "\u2026") {
      if (list.size() < 2 || open)
        return fail(ErrorCode::kInvalid, "--concurrency {}: ... goes between two numbers and the last one", text);
      open = true;
      continue;
    }
    const auto value = parse_number<std::int32_t>(part);
    if (!value || *value < 1)
      return fail(ErrorCode::kInvalid, "--concurrency {}: \"{}\" is no number from 1 on", text, part);
    if (!list.empty() && *value <= list.back())
      return fail(ErrorCode::kInvalid, "--concurrency {}: {} does not come after {}", text, *value, list.back());
    if (open) {
      go_on(list, *value);
    } else {
      list.push_back(*value);
    }
    open = false;
  }
  if (open) return fail(ErrorCode::kInvalid, "--concurrency {}: ... goes between two numbers and the last one", text);
  return list;
}

Result<std::vector<double>> parse_request_rates(std::string_view text) {
  std::vector<double> rates;
  for (const std::string_view part : split_commas(text)) {
    const auto value =
        part == "inf" ? std::optional(std::numeric_limits<double>::infinity()) : parse_number<double>(part);
    if (!value || !(*value > 0))
      return fail(ErrorCode::kInvalid, "--request-rate {}: \"{}\" is no number above 0, nor inf", text, part);
    rates.push_back(std::isinf(*value) ? 0 : *value);
  }
  return rates;
}

Result<std::vector<SloLimit>> parse_slo(std::string_view text) {
  std::vector<SloLimit> limits;
  for (const std::string_view part : split_commas(text)) {
    const auto wrong = [&] {
      return fail(ErrorCode::kInvalid,
                  "--slo {}: \"{}\" is not like ttft:p90=2000ms (ttft, tpot, itl, e2el, first_answer)", text, part);
    };
    const std::size_t colon = part.find(":p"), equal = part.find('=');
    if (colon == std::string_view::npos || equal == std::string_view::npos || equal < colon) return wrong();
    std::string_view value = part.substr(equal + 1);
    double unit = 1;
    if (value.ends_with("ms")) {
      value.remove_suffix(2);
    } else if (value.ends_with('s')) {
      value.remove_suffix(1);
      unit = 1000;
    }
    const auto percentile = parse_number<double>(part.substr(colon + 2, equal - colon - 2));
    const auto limit = parse_number<double>(value);
    if (!is_known(part.substr(0, colon)) || !percentile || *percentile <= 0 || *percentile > 100 || !limit ||
        !(*limit > 0))
      return wrong();
    limits.push_back(
        {.metric = std::string(part.substr(0, colon)), .percentile = *percentile, .limit_ms = *limit * unit});
  }
  return limits;
}

Result<std::vector<SloLimit>> parse_goodput(std::span<const std::string> words) {
  std::vector<SloLimit> limits;
  for (const std::string_view word : words) {
    const std::size_t colon = word.find(':');
    const std::string_view metric = word.substr(0, colon);
    const auto limit = colon == std::string_view::npos ? std::nullopt : parse_number<double>(word.substr(colon + 1));
    if (!is_known(metric) || !limit || *limit < 0)
      return fail(ErrorCode::kInvalid, "--goodput \"{}\": expected ttft, tpot, itl or e2el, then : and milliseconds",
                  word);
    limits.push_back({.metric = std::string(metric), .percentile = 0, .limit_ms = *limit});
  }
  return limits;
}

Result<> sweep(const SweepOptions& options, std::span<const SloLimit> goodput, const Measure& measure,
               const OnPoint& on_point, Report& report) {
  return Sweep(options, goodput, measure, on_point, report).run();
}

}  // namespace octet::bench
