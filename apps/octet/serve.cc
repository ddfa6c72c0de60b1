#include "octet/server/serve.h"

#include <cstdio>

#include "apps/octet/commands.h"
#include "apps/octet/serve_flags.h"
#include "octet/base/log.h"

int serve_command(int argc, char** argv) {
  ServeFlags flags;
  octet::FlagTable table = serve_flag_table(flags);
  table.set_epilog(
      "examples\n"
      "  octet serve model.gguf                                a GGUF file on 127.0.0.1:8000\n"
      "  octet serve DIR --host 0.0.0.0 --max-model-len 8k     a Hugging Face folder on every interface\n");
  if (const auto status = octet::parse_command(table, argc, argv)) return *status;
  if (auto level = octet::set_log_level(flags.log_level); !level) return 2;
  const auto options = serve_options(flags);
  if (!options) {
    fmt::print(stderr, "octet serve: {}\n", options.error().message);
    return 2;
  }
  return octet::server::serve(*options);
}
