#include "apps/octet/serve_flags.h"

#include <limits>

#include "apps/octet/template_flag.h"
#include "apps/octet/vllm_flags.h"

using octet::ErrorCode;
using octet::fail;
using octet::Flag;
using octet::Result;

namespace {

constexpr double kMaxInt = std::numeric_limits<std::int32_t>::max();

std::vector<Flag> server_flags(ServeFlags& f) {
  constexpr std::string_view group = "server";
  return {
      {.names = "--host",
       .group = group,
       .target = &f.host,
       .help = "address or name to listen on; 0.0.0.0 or :: for every interface"},
      {.names = "--port", .group = group, .target = &f.port, .help = "0: any free one", .min = 0, .max = 65535},
      {.names = "--uds", .group = group, .target = &f.uds, .help = "listen on this Unix socket instead"},
      {.names = "--served-model-name",
       .group = group,
       .target = &f.served_names,
       .help = "names that clients use; answers without a name show the first",
       .fallback = "MODEL as given"},
      {.names = "--shutdown-timeout",
       .group = group,
       .target = &f.shutdown_timeout,
       .help = "seconds that running requests get after SIGTERM",
       .min = 0,
       .max = 86400},
      {.names = "--watchdog-timeout",
       .group = group,
       .target = &f.watchdog_timeout,
       .help = "seconds without progress of an engine that has work, after which /health answers 503; 0: never",
       .min = 0,
       .max = 86400},
      {.names = "--enable-prompt-tokens-details",
       .group = group,
       .target = &f.prompt_tokens_details,
       .help = "usage tells the cached prompt tokens"},
      {.names = "--return-tokens-as-token-ids",
       .group = group,
       .target = &f.return_tokens_as_ids,
       .help = "log-probabilities call tokens token_id:5, so that parts of characters can be told apart"},
      {.names = "--max-logprobs",
       .group = group,
       .target = &f.max_logprobs,
       .help = "the most log-probabilities that a request may ask for with a token; -1: the whole vocabulary",
       .min = -1,
       .max = 1 << 24},
      {.names = "--enable-force-include-usage",
       .group = group,
       .target = &f.force_include_usage,
       .help = "streams end with usage, asked or not"},
      {.names = "--config",
       .group = group,
       .target = &f.config,
       .help = "YAML file of flags, as in \"port: 8080\"; the command line overrides it"},
  };
}

// What the server takes before it refuses.
std::vector<Flag> limit_flags(ServeFlags& f) {
  constexpr std::string_view group = "server";
  return {
      {.names = "--max-num-queued-reqs",
       .group = group,
       .target = &f.max_queued,
       .help = "sequences that may run and wait; beyond, 429",
       .fallback = "1,024 wait",
       .min = 1,
       .max = kMaxInt},
      {.names = "--max-num-queued-tokens",
       .group = group,
       .target = &f.max_queued_tokens,
       .help = "prompt tokens of requests without a first token, from which on new ones get 429",
       .fallback = "no limit",
       .min = 1,
       .max = 1e15},
      {.names = "--max-body-bytes",
       .group = group,
       .target = &f.body_bytes,
       .help = "largest request body",
       .min = 1024,
       .max = 1e10},
      {.names = "--h11-max-incomplete-event-size",
       .group = group,
       .target = &f.header_bytes,
       .help = "largest request line and headers, bytes",
       .min = 1024,
       .max = 1e8},
      {.names = "--h11-max-header-count",
       .group = group,
       .target = &f.header_count,
       .help = "most header fields",
       .min = 8,
       .max = 65536},
  };
}

std::vector<Flag> template_flags(ServeFlags& f) {
  constexpr std::string_view group = "model";
  return {
      {.names = "--chat-template",
       .group = group,
       .target = &f.chat_template,
       .help = "Jinja template: a file, or the template itself",
       .fallback = "the model's own"},
      {.names = "--chat-template-content-format",
       .group = group,
       .target = &f.content_format,
       .help = "content that templates are given: a string, a list of parts, or whichever the template takes",
       .choices = "auto,string,openai"},
      {.names = "--trust-request-chat-template",
       .group = group,
       .target = &f.trust_template,
       .help = "render chat_template of a request; else such a request is refused"},
      {.names = "--default-chat-template-kwargs",
       .group = group,
       .target = &f.chat_template_kwargs,
       .help = "JSON object of names for templates, which chat_template_kwargs of a request overrides",
       .fallback = "none",
       .json = true},
  };
}

Result<> template_options(const ServeFlags& f, octet::server::TemplateOptions& options) {
  using octet::text::ContentFormat;
  options.trust_request = f.trust_template;
  options.content_format = f.content_format == "string"   ? ContentFormat::kString
                           : f.content_format == "openai" ? ContentFormat::kParts
                                                          : ContentFormat::kAuto;
  if (!f.chat_template_kwargs) return {};
  auto kwargs = octet::parse_json(*f.chat_template_kwargs);
  if (!kwargs) return within("--default-chat-template-kwargs", std::move(kwargs).error());
  if (!kwargs->is_object()) return fail(ErrorCode::kInvalid, "--default-chat-template-kwargs: expected a JSON object");
  options.default_variables = *std::move(kwargs);
  return {};
}

}  // namespace

octet::FlagTable serve_flag_table(ServeFlags& flags) {
  octet::FlagTable table("octet serve", "Serves a model over the OpenAI API.", model_source_rows(flags));
  table.add(template_flags(flags));
  table.add(model_type_rows(flags));
  table.add(server_flags(flags));
  table.add(limit_flags(flags));
  table.add(answer_flag_rows(flags.answers));
  table.add(surface_flag_rows(flags.surface));
  table.add(step_and_file_rows(flags));
  table.add(log_flags(flags.log));
  table.add_missing(octet::vllm_flags::kAll);
  return table;
}

Result<octet::server::ServeOptions> serve_options(const ServeFlags& f) {
  octet::server::ServeOptions options;
  OCTET_TRY(options.replica, replica_options(f));
  OCTET_TRY_VOID(apply_surface_flags(f.surface, options));
  OCTET_TRY_VOID(apply_log_flags(f.log, options));
  apply_answer_flags(f.answers, options);
  options.http.host = f.host;
  options.http.port = static_cast<std::uint16_t>(f.port);
  options.http.unix_path = f.uds.value_or("");
  options.http.limits.header_bytes = static_cast<std::size_t>(f.header_bytes);
  options.http.limits.header_count = static_cast<std::size_t>(f.header_count);
  options.http.limits.body_bytes = static_cast<std::size_t>(f.body_bytes);
  options.api.prompt_tokens_details = f.prompt_tokens_details;
  options.api.force_include_usage = f.force_include_usage;
  options.api.return_tokens_as_ids = f.return_tokens_as_ids;
  options.replica.max_logprobs = static_cast<std::int32_t>(f.max_logprobs);
  options.names = f.served_names;
  options.shutdown_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(f.shutdown_timeout * 1000));
  options.watchdog = std::chrono::milliseconds(static_cast<std::int64_t>(f.watchdog_timeout * 1000));
  if (options.watchdog->count() == 0) options.watchdog.reset();

  if (f.chat_template) {
    OCTET_TRY(options.replica.chat_template, chat_template_source(*f.chat_template));
  }
  OCTET_TRY_VOID(template_options(f, options.api.templates));
  if (f.max_queued) options.replica.max_admitted = static_cast<std::int32_t>(*f.max_queued);
  options.replica.max_queued_tokens = f.max_queued_tokens;
  return options;
}
