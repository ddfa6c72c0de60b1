// `octet bench compare`: runs that were written to files, beside each other.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "apps/octet/bench_commands.h"
#include "apps/octet/line_io.h"
#include "octet/bench/compare.h"
#include "octet/bench/figure_files.h"

namespace {

constexpr int kWidth = 100;

constexpr const char* kUsage = R"text(octet bench compare: runs beside each other

usage: octet bench compare FIRST OTHER [OTHER ...]

Each file is what octet bench serve wrote by --json, or a result file of octet bench serve or vllm bench serve
(--save-result; with --append-result each line is a run, and runs of one load are its repeats). Shown are the figures of
FIRST over those of each other, run by run: the median, and least to most where there are repeats.

example
  octet bench compare before.json after.json
)text";

int fail_with(const octet::Error& error) {
  fmt::print(stderr, "octet bench compare: {}\n", error.message);
  return 1;
}

}  // namespace

int bench_compare_command(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (word.starts_with('-')) {
      fmt::print(stderr, "octet bench compare: {}: no such flag\n\n{}", word, kUsage);
      return 2;
    }
    paths.emplace_back(word);
  }
  if (paths.size() < 2) {
    fmt::print(stderr, "octet bench compare: expected two files or more\n\n{}", kUsage);
    return 2;
  }
  const auto figures = octet::bench::gather_figures(paths);
  if (!figures) return fail_with(figures.error());
  const auto printed = print_output(octet::bench::comparison_text(*figures, kWidth, ::isatty(STDOUT_FILENO) == 1));
  return printed ? 0 : fail_with(printed.error());
}
