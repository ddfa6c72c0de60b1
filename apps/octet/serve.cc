#include "octet/server/serve.h"

#include <cstdio>

#include "apps/octet/commands.h"
#include "apps/octet/model_name.h"
#include "apps/octet/pull_signals.h"
#include "apps/octet/serve_flags.h"
#include "octet/base/log.h"

namespace {

// `octet serve smollm2`, `octet serve ORG/NAME`: where no file or folder is called so, a name stands for the model.
octet::Result<> resolve_names(ServeFlags& flags) {
  ModelSource source{.revision = flags.revision, .token = flags.hf_token, .cache = flags.download_dir};
  std::optional<std::string>& model = flags.model ? flags.model : flags.model_flag;
  if (!model) return {};
  ModelSource model_source = source;
  model_source.ignore = flags.load.ignore_patterns;
  OCTET_TRY(const auto path, resolve_model_name(*model, model_source));
  if (path) {
    if (flags.served_names.empty()) flags.served_names = {*model};
    model = path->string();
  }
  if (!flags.tokenizer) return {};
  if (flags.load.tokenizer_revision) source.revision = flags.load.tokenizer_revision;
  OCTET_TRY(const auto tokenizer, resolve_tokenizer_name(*flags.tokenizer, source));
  if (tokenizer) flags.tokenizer = tokenizer->string();
  return {};
}

}  // namespace

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
  if (auto resolved = resolve_names(flags); !resolved) {
    fmt::print(stderr, "octet serve: {}\n", resolved.error().message);
    return resolved.error().code == octet::ErrorCode::kCancelled ? 128 + octet::hub::stop_signal : 1;
  }
  auto options = serve_options(flags);
  if (!options) {
    fmt::print(stderr, "octet serve: {}\n", options.error().message);
    return 2;
  }
  options->api.root = given;
  return octet::server::serve(*options);
}
