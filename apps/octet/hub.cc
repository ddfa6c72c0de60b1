#include "apps/octet/hub.h"

#include <algorithm>

#include "apps/octet/hub_cache.h"
#include "apps/octet/hub_fetch.h"
#include "apps/octet/hub_listing.h"
#include "apps/octet/hub_select.h"
#include "apps/octet/hub_settings.h"
#include "apps/octet/pull_signals.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxQuantBytes = 64;

bool is_quant(std::string_view text) {
  return !text.empty() && text.size() <= kMaxQuantBytes && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

Result<Settings> settings_for(const PullOptions& options) {
  OCTET_TRY(Settings settings, read_settings());
  settings.offline = settings.offline || options.offline;
  if (!options.cache.empty()) settings.cache = fs::absolute(options.cache);
  if (!options.token.empty()) {
    settings.token = options.token;
    settings.token_source = "--hf-token";
  }
  return settings;
}

bool is_there(const fs::path& snapshot, const std::vector<std::string>& files, const ModelName& name,
              const PullOptions& options) {
  if (options.text_side_only) return std::ranges::find(files, "tokenizer.json") != files.end();
  return is_complete(snapshot, files, name.quant);
}

// What a complete snapshot of the cache gives; nothing where it is not complete.
std::optional<fs::path> cached_model(const ModelName& name, const PullOptions& options, const Settings& settings) {
  const RepositoryCache cache(settings.cache, name.repository);
  const auto commit = cache.commit_of(options.revision);
  if (!commit) return std::nullopt;
  const std::vector<std::string> files = cache.files_of(*commit);
  if (!is_there(cache.snapshot(*commit), files, name, options)) return std::nullopt;
  return options.text_side_only ? cache.snapshot(*commit) : model_path(cache.snapshot(*commit), files, name.quant);
}

Result<fs::path> offline_model(const ModelName& name, const PullOptions& options, const Settings& settings) {
  const RepositoryCache cache(settings.cache, name.repository);
  if (const auto model = cached_model(name, options, settings)) return *model;
  // Files picked by hand have no rule of completeness.
  const auto commit = cache.commit_of(options.revision);
  std::error_code error;
  if (!options.include.empty() && commit && fs::exists(cache.snapshot(*commit), error)) return cache.snapshot(*commit);
  return fail(ErrorCode::kNotFound, "offline, and {} ({}) is not complete in {}: fetch it once without {}",
              name.repository, options.revision, settings.cache.string(),
              options.offline ? "--offline" : "HF_HUB_OFFLINE");
}

Result<std::vector<HubFile>> choose_files(const Listing& listing, const ModelName& name, const PullOptions& options) {
  std::vector<HubFile> files;
  if (options.text_side_only) {
    std::ranges::copy_if(listing.files, std::back_inserter(files),
                         [](const HubFile& file) { return is_text_side(file.path); });
  } else if (options.include.empty()) {
    OCTET_TRY(files, server_files(listing, name.quant));
  } else {
    files = listing.files;
  }
  const Patterns patterns{options.include, options.exclude};
  std::erase_if(files, [&](const HubFile& file) { return !matches(patterns, file.path); });
  if (files.empty()) return fail(ErrorCode::kNotFound, "none of its {} files is asked for", listing.files.size());
  return files;
}

Result<fs::path> fetch_model(const ModelName& name, const PullOptions& options, const Settings& settings) {
  const SignalGuard guard;
  Listing listing;
  {
    Connection connection(settings, [] { return stop_signal != 0; });
    OCTET_TRY(listing, list_repository(connection, settings, name.repository, options.revision));
  }
  auto files = choose_files(listing, name, options);
  if (!files) return within(name.repository, std::move(files).error());
  const RepositoryCache cache(settings.cache, name.repository);
  OCTET_TRY_VOID(fetch_files({.repository = name.repository,
                              .revision = options.revision,
                              .commit = listing.commit,
                              .files = *std::move(files),
                              .connections = options.connections,
                              .range_bytes = options.range_bytes},
                             settings, cache));
  OCTET_TRY_VOID(cache.set_commit(options.revision, listing.commit));
  const fs::path snapshot = cache.snapshot(listing.commit);
  return options.text_side_only ? snapshot : model_path(snapshot, cache.files_of(listing.commit), name.quant);
}

Error stopped(const Settings& settings, const ModelName& name) {
  return {ErrorCode::kCancelled,
          fmt::format("stopped; what has come of {} stays in {}, and the same command goes on from there",
                      name.repository, settings.cache.string())};
}

}  // namespace

bool is_model_name(std::string_view text) {
  const std::size_t colon = text.find(':');
  return is_repository_name(text.substr(0, colon)) && (colon == text.npos || is_quant(text.substr(colon + 1)));
}

Result<ModelName> parse_model_name(std::string_view text) {
  if (!is_model_name(text)) return fail(ErrorCode::kInvalid, "'{}': expected ORG/NAME or ORG/NAME:TYPE", text);
  const std::size_t colon = std::min(text.find(':'), text.size());
  ModelName name{.repository = std::string(text.substr(0, colon)), .quant = {}};
  if (colon < text.size()) name.quant = text.substr(colon + 1);
  return name;
}

Result<fs::path> pull_model(const ModelName& name, const PullOptions& options) {
  OCTET_TRY(const Settings settings, settings_for(options));
  if (settings.offline) return offline_model(name, options, settings);
  auto model = fetch_model(name, options, settings);
  if (!model && model.error().code == ErrorCode::kCancelled) return std::unexpected(stopped(settings, name));
  return model;
}

Result<fs::path> obtain_model(const ModelName& name, const PullOptions& options) {
  OCTET_TRY(const Settings settings, settings_for(options));
  if (auto model = cached_model(name, options, settings)) return *std::move(model);
  return pull_model(name, options);
}

}  // namespace octet::hub
