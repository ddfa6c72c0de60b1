// Flags that say what a benchmark sends.
#pragma once
#include "octet/base/flags.h"
#include "octet/bench/datasets.h"

// The rows refer to `options`, which must outlive the table.
std::vector<octet::Flag> workload_flags(octet::bench::WorkloadOptions& options);

// After parsing: an error where one of them was given that a preset takes no notice of. It names the flag.
octet::Result<> check_beside_preset(const octet::FlagTable& table, octet::bench::WorkloadOptions& options);
