// The flags of `octet serve`: vLLM's names, one table.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/octet/answer_flags.h"
#include "apps/octet/engine_flags.h"
#include "apps/octet/log_flags.h"
#include "apps/octet/surface_flags.h"
#include "octet/base/error.h"
#include "octet/base/flags.h"
#include "octet/server/serve.h"

struct ServeFlags : EngineFlags {
  std::vector<std::string> served_names;
  std::optional<std::string> chat_template, chat_template_kwargs, uds;
  std::string host = "127.0.0.1", config, content_format = "auto";
  LogFlags log;
  std::int64_t port = 8000, max_logprobs = 20;
  std::int64_t header_bytes = 65536, header_count = 256, body_bytes = std::int64_t{64} << 20;
  std::optional<std::int64_t> max_queued, max_queued_tokens;
  double shutdown_timeout = 30, watchdog_timeout = 60;
  bool prompt_tokens_details = false, force_include_usage = false, return_tokens_as_ids = false, trust_template = false;
  SurfaceFlags surface;
  AnswerFlags answers;
};

// The targets are fields of flags, which must outlive the table.
octet::FlagTable serve_flag_table(ServeFlags& flags);
// Checks what the table cannot; errors name the flag.
octet::Result<octet::server::ServeOptions> serve_options(const ServeFlags& flags);
