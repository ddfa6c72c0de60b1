#include "apps/octet/hub_listing.h"

#include <algorithm>
#include <set>

#include "octet/base/edit_distance.h"
#include "octet/base/json.h"

namespace octet::hub {
namespace {

constexpr std::size_t kMaxListingBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxNameBytes = 96;
constexpr std::size_t kMaxPathBytes = 1024;
constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 53;

bool is_hexadecimal(std::string_view text, std::size_t size) {
  return text.size() == size &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_word(std::string_view word) {
  constexpr std::string_view kSigns = "-_.";
  if (word.empty() || word.size() > kMaxNameBytes || word.front() == '-' || word.front() == '.') return false;
  return std::ranges::all_of(word, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kSigns.find(c) != kSigns.npos;
  });
}

// A path that stays below the folder it is put in, on any system.
bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) return false;
  if (std::ranges::any_of(path, [](unsigned char c) { return c < ' ' || c == 127 || c == '\\'; })) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<HubFile> read_file_entry(const Json& entry) {
  if (!entry.is_object()) return fail(ErrorCode::kInvalid, "an entry of the file list is no object");
  HubFile file;
  file.path = text_of(entry, "rfilename");
  if (!is_safe_path(file.path)) {
    return fail(ErrorCode::kInvalid, "the file name {} would leave its folder", dump_json(Json(file.path)));
  }
  const auto lfs = entry.find("lfs");
  const bool large = lfs != entry.end() && lfs->is_object();
  file.kind = large ? DigestKind::kSha256 : DigestKind::kGitBlob;
  file.digest = large ? text_of(*lfs, "sha256") : text_of(entry, "blobId");
  if (!is_hexadecimal(file.digest, large ? 64 : 40)) {
    return fail(ErrorCode::kInvalid, "{}: the hub gives no checksum", file.path);
  }
  const Json& holder = large && lfs->contains("size") ? *lfs : entry;
  const auto size = holder.find("size");
  if (size == holder.end() || !size->is_number_integer() || *size < 0 || *size > kMaxFileBytes) {
    return fail(ErrorCode::kInvalid, "{}: the hub gives no size", file.path);
  }
  file.size = size->get<std::int64_t>();
  return file;
}

Result<Listing> read_listing(const std::string& text) {
  OCTET_TRY(const Json answer, parse_json(text));
  if (!answer.is_object()) return fail(ErrorCode::kInvalid, "no JSON object");
  Listing listing;
  listing.commit = text_of(answer, "sha");
  if (!is_commit(listing.commit)) return fail(ErrorCode::kInvalid, "sha is no commit");
  const auto siblings = answer.find("siblings");
  if (siblings == answer.end() || !siblings->is_array()) return fail(ErrorCode::kInvalid, "siblings is no list");
  std::set<std::string> seen;
  for (const Json& entry : *siblings) {
    OCTET_TRY(HubFile file, read_file_entry(entry));
    if (!seen.insert(file.path).second) return fail(ErrorCode::kInvalid, "{} is listed twice", file.path);
    listing.files.push_back(std::move(file));
  }
  return listing;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return text;
}

// " (did you mean ORG/NAME?)": the nearest name among the owner's models, where one is near; else nothing.
std::string suggestion(Connection& connection, const Settings& settings, const std::string& repository) {
  const std::string owner = repository.substr(0, repository.find('/'));
  const std::string url = fmt::format("{}/api/models?author={}&limit=1000", settings.endpoint, owner);
  const auto reply = connection.get(url, kMaxListingBytes);
  if (!reply || reply->status != 200) return {};
  const auto models = parse_json(reply->body);
  if (!models || !models->is_array()) return {};
  std::string nearest;
  std::size_t best = repository.size() / 4 + 1;
  for (const Json& model : *models) {
    const std::string name = model.is_object() ? text_of(model, "id") : std::string();
    if (!is_repository_name(name)) continue;
    const std::size_t distance = edit_distance(lower(name), lower(repository));
    if (distance < best) best = distance, nearest = name;
  }
  return nearest.empty() ? std::string() : fmt::format(" (did you mean {}?)", nearest);
}

}  // namespace

bool is_repository_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return false;
  const std::string_view owner = name.substr(0, slash), rest = name.substr(slash + 1);
  // "--" separates owner and name in the cache.
  return is_word(owner) && is_word(rest) && name.find("--") == name.npos && name.find("..") == name.npos;
}

bool is_commit(std::string_view revision) { return is_hexadecimal(revision, 40); }

Error hub_error(const Reply& reply, const Settings& settings, const std::string& repository,
                const std::string& revision) {
  const bool has_token = !settings.token.empty();
  const std::string page = fmt::format("{}/{}", settings.endpoint, repository);
  const std::string tokens = fmt::format("{}/settings/tokens", settings.endpoint);
  const bool denied = reply.status == 401 || reply.status == 403;
  if (reply.error_code == "GatedRepo" || (denied && reply.error_message.find("gated") != std::string::npos)) {
    if (has_token) {
      return {ErrorCode::kInvalid,
              fmt::format("{} is gated and the account of {} has no access: ask for it at {}, and give the token the "
                          "right to read gated repositories ({})",
                          repository, settings.token_source, page, tokens)};
    }
    return {ErrorCode::kInvalid,
            fmt::format("{} is gated: accept its terms at {}, make a token at {}, and set HF_TOKEN", repository, page,
                        tokens)};
  }
  if (reply.error_code == "RevisionNotFound") {
    return {ErrorCode::kNotFound,
            fmt::format("{} has no revision '{}': {}/branches lists them", repository, revision, page)};
  }
  if (denied && reply.error_message.find("disabled") != std::string::npos) {
    return {ErrorCode::kUnsupported, fmt::format("{}: {}", page, reply.error_message)};
  }
  const bool wrong_token = denied && has_token && reply.error_code.empty();
  if (wrong_token) {
    return {ErrorCode::kInvalid, fmt::format("{} refuses the token of {} ({}): {} shows valid ones", settings.endpoint,
                                             settings.token_source, reply.status, tokens)};
  }
  if (reply.status == 404 || denied) {
    return {ErrorCode::kNotFound,
            fmt::format("{} has no repository '{}' that you may see: check the spelling{}", settings.endpoint,
                        repository, has_token ? "" : "; a private one needs HF_TOKEN")};
  }
  if (reply.status == 429) {
    return {ErrorCode::kExhausted, fmt::format("{} limits your requests{}: try later", settings.endpoint,
                                               has_token ? "" : ", less so with HF_TOKEN")};
  }
  const std::string said = reply.error_message.empty() ? reply.body.substr(0, 200) : reply.error_message;
  return {ErrorCode::kIo, fmt::format("{}: status {}{}{}", page, reply.status, said.empty() ? "" : ": ", said)};
}

Result<Listing> list_repository(Connection& connection, const Settings& settings, const std::string& repository,
                                const std::string& revision) {
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings.endpoint, repository,
                                      url_encoded(revision, false));
  OCTET_TRY(const Reply reply, connection.get(url, kMaxListingBytes));
  if (reply.status != 200) {
    Error error = hub_error(reply, settings, repository, revision);
    const bool no_such_name = error.code == ErrorCode::kNotFound && reply.error_code != "RevisionNotFound";
    if (no_such_name) error.message += suggestion(connection, settings, repository);
    return std::unexpected(std::move(error));
  }
  auto listing = read_listing(reply.body);
  if (!listing) return within(url, std::move(listing).error());
  return listing;
}

}  // namespace octet::hub
