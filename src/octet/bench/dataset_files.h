// Datasets that are read from a file: sharegpt, custom, timed_trace.
#pragma once
#include "octet/base/error.h"
#include "octet/bench/datasets.h"
#include "octet/bench/prompt_text.h"

namespace octet::bench {

// By options.dataset. Errors name --dataset-path, the file, its line (of JSON lines) and the key.
Result<Workload> read_workload(const WorkloadOptions& options, PromptText& text);
// The same from the file's text.
Result<Workload> parse_workload(const WorkloadOptions& options, PromptText& text, std::string_view content);

}  // namespace octet::bench
