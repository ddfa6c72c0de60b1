// A whole report as JSON: every record and figure. `octet bench compare` reads it back.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/bench/report.h"

namespace octet::bench {

// One object whose "format" is "octet-bench-report" and "version" 1. Numbers come back exactly; text that is no valid
// UTF-8 comes back repaired.
std::string report_json(const Report& report);

// Errors name the key, as in "targets[0].points[2].runs[0].records[7].status: expected a number". Keys that this
// version does not know are passed over; a later version is an error.
Result<Report> parse_report(std::string_view text);

// As write_result() of result_file.h, and read back with the path in each error.
Result<> write_report(const std::filesystem::path& path, const Report& report);
Result<Report> read_report(const std::filesystem::path& path);

}  // namespace octet::bench
