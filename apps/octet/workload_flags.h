// Flags that say what a benchmark sends.
#pragma once
#include "octet/base/flags.h"
#include "octet/bench/datasets.h"

// The rows refer to `options`, which must outlive the table.
std::vector<octet::Flag> workload_flags(octet::bench::WorkloadOptions& options);
