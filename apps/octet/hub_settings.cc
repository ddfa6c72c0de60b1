#include "apps/octet/hub_settings.h"

#include <algorithm>
#include <array>
#include <optional>

#include "octet/base/environment.h"
#include "octet/base/file.h"
#include "octet/base/flags.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPublicHub = "https://huggingface.co";
constexpr std::size_t kMaxTokenBytes = 4096;
constexpr std::int64_t kMaxStallSeconds = 3600;

std::string stripped(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kSpace) + 1 - first));
}

bool is_true(std::optional<std::string> value) {
  if (!value) return false;
  std::ranges::transform(*value, value->begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 32) : c; });
  return *value == "1" || *value == "TRUE" || *value == "YES" || *value == "ON";
}

// A leading ~ is the home folder, as a shell would have made it.
fs::path expanded(const std::string& path) {
  if (path == "~" || path.starts_with("~/")) {
    if (const auto home = environment("HOME")) return fs::path(*home + path.substr(1));
  }
  return path;
}

Result<fs::path> home_folder() {
  if (const auto home = environment("HF_HOME")) return expanded(*home);
  if (const auto cache = environment("XDG_CACHE_HOME")) return expanded(*cache) / "huggingface";
  if (const auto home = environment("HOME")) return fs::path(*home) / ".cache" / "huggingface";
  return fail(ErrorCode::kNotFound, "no folder for models of the hub: set HF_HOME or HOME");
}

Result<fs::path> cache_folder(const fs::path& home) {
  fs::path folder = home / "hub";
  for (const char* name : {"HUGGINGFACE_HUB_CACHE", "HF_HUB_CACHE"}) {
    if (const auto value = environment(name)) folder = expanded(*value);
  }
  std::error_code error;
  fs::path absolute = fs::absolute(folder, error);
  if (error) return fail(ErrorCode::kIo, "{}: {}", folder.string(), error.message());
  return absolute;
}

Result<> read_token(const fs::path& home, Settings& settings) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (const auto value = environment(name); value && settings.token.empty()) {
      settings.token = stripped(*value);
      settings.token_source = name;
    }
  }
  if (settings.token.empty()) {
    const auto named = environment("HF_TOKEN_PATH");
    const fs::path file = named ? expanded(*named) : home / "token";
    std::error_code error;
    if (!fs::exists(file, error)) return {};
    OCTET_TRY(const std::string text, read_file(file, kMaxTokenBytes));
    settings.token = stripped(text);
    settings.token_source = file.string();
  }
  // It goes into a header line.
  if (std::ranges::any_of(settings.token, [](char c) { return c <= ' ' || c > '~'; })) {
    return fail(ErrorCode::kInvalid, "{}: this is no token of the hub: it has spaces or control characters",
                settings.token_source);
  }
  return {};
}

Result<> read_stall(Settings& settings) {
  const auto value = environment("HF_HUB_DOWNLOAD_TIMEOUT");
  if (!value) return {};
  const auto seconds = parse_size(*value);
  if (!seconds || *seconds < 1 || *seconds > kMaxStallSeconds) {
    return fail(ErrorCode::kInvalid, "HF_HUB_DOWNLOAD_TIMEOUT {}: expected seconds, 1 to {}", *value, kMaxStallSeconds);
  }
  settings.stall = std::chrono::seconds(*seconds);
  return {};
}

}  // namespace

Result<Settings> read_settings() {
  Settings settings;
  settings.endpoint = environment("HF_ENDPOINT").value_or(std::string(kPublicHub));
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  if (!settings.endpoint.starts_with("https://") && !settings.endpoint.starts_with("http://")) {
    return fail(ErrorCode::kInvalid, "HF_ENDPOINT {}: expected an address with https:// or http://", settings.endpoint);
  }
  OCTET_TRY(const fs::path home, home_folder());
  OCTET_TRY(settings.cache, cache_folder(home));
  OCTET_TRY_VOID(read_token(home, settings));
  OCTET_TRY_VOID(read_stall(settings));
  settings.offline = is_true(environment("HF_HUB_OFFLINE"));
  for (const char* name : {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (auto value = environment(name)) settings.certificates = *std::move(value);
  }
  return settings;
}

}  // namespace octet::hub
