#include "octet/server/serve.h"

#include <cstdio>

#include "apps/octet/commands.h"
#include "apps/octet/pull_signals.h"
#include "apps/octet/serve_flags.h"
#include "octet/base/log.h"

int serve_command(int argc, char** argv) {
  ServeFlags flags;
  octet::FlagTable table = serve_flag_table(flags);
  table.set_epilog(
      "examples\n"
      "  octet serve model.gguf                                a GGUF file on 127.0.0.1:8000\n"
      "  octet serve ORG/NAME                                  a model of the hub, fetched at the first time\n"
      "  octet serve DIR --host 0.0.0.0 --max-model-len 8k     a Hugging Face folder on every interface\n");
  if (const auto status = octet::parse_command(table, argc, argv, [&] { return start_log(flags.log); })) return *status;
  const std::string given = flags.model ? *flags.model : flags.model_flag.value_or("");
  const auto resolved = resolve_names(flags);
  if (!resolved) {
    fmt::print(stderr, "octet serve: {}\n", resolved.error().message);
    return resolved.error().code == octet::ErrorCode::kCancelled ? 128 + octet::hub::stop_signal : 1;
  }
  if (*resolved && flags.served_names.empty()) flags.served_names = {given};
  auto options = serve_options(flags);
  if (!options) {
    fmt::print(stderr, "octet serve: {}\n", options.error().message);
    return 2;
  }
  options->api.root = given;
  return octet::server::serve(*options);
}
