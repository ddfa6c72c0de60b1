// Figures of runs that were written to files, by octet bench or by vllm bench.
#pragma once
#include <filesystem>
#include <span>
#include <string_view>

#include "octet/base/error.h"
#include "octet/bench/figures.h"

namespace octet::bench {

// The text of a file: a report of octet bench (report_file.h), or vLLM's result objects, one or one per line. Errors
// name the key.
Result<ReportFigures> parse_figures(std::string_view text);

// The targets of all files in one report, to be compared. A target is called by its file, and by its name where a file
// has several. Errors name the file; one of them is that a file shares no load with the first one.
Result<ReportFigures> gather_figures(std::span<const std::filesystem::path> paths);

}  // namespace octet::bench
