// `octet bench compare`: runs that were written to files, beside each other.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "apps/octet/bench_commands.h"
#include "apps/octet/line_io.h"
#include "octet/bench/compare.h"
#include "octet/bench/figure_files.h"
#include "octet/bench/html_report.h"
#include "octet/bench/whole_file.h"

namespace {

constexpr int kWidth = 100;

constexpr const char* kUsage = R"text(octet bench compare: runs beside each other

usage: octet bench compare FIRST OTHER [OTHER ...] [--html FILE]

Each file is what octet bench serve wrote by --json, or a result file of octet bench serve or vllm bench serve
(--save-result; with --append-result each line is a run, and runs of one load are its repeats). Shown are the figures of
FIRST over those of each other, run by run: the median, and least to most where there are repeats. --html writes a page
with their charts.

examples
  octet bench compare before.json after.json
  octet bench compare octet.json vllm.json --html comparison.html
)text";

int fail_with(const octet::Error& error) {
  fmt::print(stderr, "octet bench compare: {}\n", error.message);
  return 1;
}

int wrong_usage(std::string_view what) {
  fmt::print(stderr, "octet bench compare: {}\n\n{}", what, kUsage);
  return 2;
}

}  // namespace

int bench_compare_command(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  std::optional<std::filesystem::path> html;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    constexpr std::string_view kHtml = "--html=";
    if (word == "--help" || word == "-h") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (word == "--html" && i + 1 < argc) {
      html = argv[++i];
    } else if (word.starts_with(kHtml) && word.size() > kHtml.size()) {
      html = word.substr(kHtml.size());
    } else if (word.starts_with("--html")) {
      return wrong_usage("--html: expected the name of a file");
    } else if (word.starts_with('-')) {
      return wrong_usage(fmt::format("{}: no such flag", word));
    } else {
      paths.emplace_back(word);
    }
  }
  if (paths.size() < 2) return wrong_usage("expected two files or more");
  const auto figures = octet::bench::gather_figures(paths);
  if (!figures) return fail_with(figures.error());
  const auto printed = print_output(octet::bench::comparison_text(*figures, kWidth, ::isatty(STDOUT_FILENO) == 1));
  if (!printed) return fail_with(printed.error());
  if (!html) return 0;
  const auto written = octet::bench::write_whole(*html, octet::bench::html_report(*figures));
  return written ? 0 : fail_with(written.error());
}
