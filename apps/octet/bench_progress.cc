#include "apps/octet/bench_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace {
constexpr std::int64_t kBetweenLinesNs = 10'000'000'000;  // where there is no terminal
}

BenchProgress::BenchProgress(std::string load, bool wanted)
    : load_(std::move(load)), wanted_(wanted), terminal_(::isatty(STDERR_FILENO) == 1) {}

void BenchProgress::show(const octet::bench::Progress& now) {
  if (!wanted_ || (!terminal_ && now.elapsed_ns - shown_ns_ < kBetweenLinesNs)) return;
  shown_ns_ = now.elapsed_ns;
  const double seconds = static_cast<double>(now.elapsed_ns) / 1e9;
  const std::string failed = now.failed > 0 ? fmt::format(", {} failed", now.failed) : "";
  fmt::print(stderr, "{}{}: {}/{} requests{}, {} running, {:.2f} req/s, {:.0f} tok/s, {:.0f} s{}",
             terminal_ ? "\r\033[K" : "", load_, now.done, now.requests, failed, now.running,
             static_cast<double>(now.done) / seconds, static_cast<double>(now.output_tokens) / seconds, seconds,
             terminal_ ? "" : "\n");
  std::fflush(stderr);
}

void BenchProgress::clear() {
  if (wanted_ && terminal_) fmt::print(stderr, "\r\033[K");
}
