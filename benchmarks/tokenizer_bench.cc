// How fast a tokenizer loads and encodes: tokenizer_bench TOKENIZER TEXT... (benchmarks/tokenizer_speed.py calls it).
// One line for the load and one for each text file, each with the median of five runs. Without arguments: how to call it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "octet/base/file.h"
#include "octet/text/tokenizer.h"

namespace {

constexpr std::size_t kMaxFile = std::size_t{256} << 20;

double median_seconds(const std::function<void()>& work) {
  std::array<double, 5> seconds{};
  for (double& run : seconds) {
    const auto start = std::chrono::steady_clock::now();
    work();
    run = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::ranges::sort(seconds);
  return seconds[2];
}

octet::Result<> measure(int argc, char** argv) {
  OCTET_TRY(auto tokenizer, octet::text::Tokenizer::open(argv[1]));
  const double load = median_seconds([&] { tokenizer = octet::text::Tokenizer::open(argv[1]).value(); });
  fmt::print("load {:.3f} s\n", load);
  for (int i = 2; i < argc; ++i) {
    OCTET_TRY(const std::string text, octet::read_file(argv[i], kMaxFile));
    std::size_t tokens = 0;
    const double seconds = median_seconds([&] { tokens = tokenizer->encode(text).value().size(); });
    fmt::print("{}: {:.1f} MB/s, {:.2f} bytes a token\n", argv[i], static_cast<double>(text.size()) / 1e6 / seconds,
               static_cast<double>(text.size()) / static_cast<double>(tokens));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: tokenizer_bench TOKENIZER TEXT...\n", stderr);
    return 2;
  }
  const auto done = measure(argc, argv);
  if (!done) fmt::print(stderr, "tokenizer_bench: {}\n", done.error().message);
  return done ? 0 : 1;
}
