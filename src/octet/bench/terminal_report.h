// A report as text for a terminal or a log.
#pragma once
#include <span>
#include <string>

#include "octet/bench/report.h"

namespace octet::bench {

// width: columns that a line may have (tables that are wider are broken into several, never cut). colour: with escape
// sequences for bold, green and red; without, plain text. Texts from outside cannot steer the terminal.
// One point of one target: its block; more: one table per target with the verdict of each point; two targets or more:
// the ratios of the first to each other one too. The last line tells the most requests per second inside the limits.
std::string terminal_report(const Report& report, int width = 100, bool colour = false);

// The block of one point: requests, rates, a table of times, failures with reasons and counts, warnings. For the
// progress of a sweep, too.
std::string point_report(const Point& point, std::span<const SloLimit> slo, int width = 100, bool colour = false);

}  // namespace octet::bench
