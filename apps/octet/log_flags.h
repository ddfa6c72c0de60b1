// The flags of `octet serve` about its log and statistics.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/flags.h"
#include "octet/server/serve.h"

struct LogFlags {
  std::string level = "info", format = "text", http_level = "info";
  std::optional<std::string> config_file, silent_paths, buckets;
  std::optional<std::int64_t> max_length;
  bool disable_stats = false, disable_access = false, error_stack = false;
  bool requests = false, outputs = false, deltas = true;
};

// The targets are fields of flags, which must outlive the rows.
std::vector<octet::Flag> log_flags(LogFlags& flags);
// Level and format take effect at once, for the whole process. Errors name the flag.
octet::Result<> start_log(const LogFlags& flags);
octet::Result<> apply_log_flags(const LogFlags& flags, octet::server::ServeOptions& options);
