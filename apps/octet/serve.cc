#include "octet/server/serve.h"

#include <cstdio>

#include "apps/octet/commands.h"
#include "apps/octet/pull_package.h"
#include "apps/octet/serve_flags.h"
#include "octet/base/log.h"

namespace {

// `octet serve smollm2`: a name that pull knows, where no file or folder is called so, stands for the model it brings.
octet::Result<> resolve_model(ServeFlags& flags) {
  std::optional<std::string>& model = flags.model ? flags.model : flags.model_flag;
  if (!model || !is_known_model(*model) || std::filesystem::exists(*model)) return {};
  OCTET_TRY(const std::filesystem::path path, pull_package(*model));
  if (flags.served_names.empty()) flags.served_names = {*model};
  model = path.string();
  return {};
}

}  // namespace

int serve_command(int argc, char** argv) {
  ServeFlags flags;
  octet::FlagTable table = serve_flag_table(flags);
  table.set_epilog(
      "examples\n"
      "  octet serve model.gguf                                a GGUF file on 127.0.0.1:8000\n"
      "  octet serve DIR --host 0.0.0.0 --max-model-len 8k     a Hugging Face folder on every interface\n");
  if (const auto status = octet::parse_command(table, argc, argv)) return *status;
  if (auto level = octet::set_log_level(flags.log_level); !level) return 2;
  if (auto resolved = resolve_model(flags); !resolved) {
    fmt::print(stderr, "octet serve: {}\n", resolved.error().message);
    return 1;
  }
  const auto options = serve_options(flags);
  if (!options) {
    fmt::print(stderr, "octet serve: {}\n", options.error().message);
    return 2;
  }
  return octet::server::serve(*options);
}
