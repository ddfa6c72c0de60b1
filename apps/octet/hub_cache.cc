#include "apps/octet/hub_cache.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "apps/octet/hub_select.h"
#include "apps/octet/pull_signals.h"
#include "octet/base/file.h"
#include "octet/formats/shard_index.h"

namespace octet::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxRefBytes = 4096;
constexpr const char* kIndex = "model.safetensors.index.json";

// A revision is a path below refs ("main", "refs/pr/1").
bool is_plain_revision(const std::string& revision) {
  return !revision.empty() && fs::path(revision).is_relative() &&
         std::ranges::none_of(fs::path(revision), [](const fs::path& part) { return part == ".." || part == "."; });
}

bool has(const std::vector<std::string>& files, std::string_view name) {
  return std::ranges::find(files, name) != files.end();
}

bool has_weights(const fs::path& snapshot, const std::vector<std::string>& files) {
  if (!has(files, kIndex)) return has(files, "model.safetensors");
  const auto index = formats::read_shard_index(snapshot / kIndex);
  if (!index) return false;
  return std::ranges::all_of(index->shards, [&](const auto& entry) { return has(files, entry.second); });
}

// Are all parts of a split file there? Its name tells their number.
bool has_all_parts(const std::vector<std::string>& parts) {
  const std::string& last = parts.back();
  const std::size_t of = last.rfind("-of-");
  if (parts.size() == 1 && (of == last.npos || last.size() != of + std::string_view("-of-00001.gguf").size()))
    return true;
  return of != last.npos && std::atoi(last.c_str() + of + 4) == static_cast<int>(parts.size());
}

}  // namespace

RepositoryCache::RepositoryCache(fs::path cache, const std::string& repository) {
  const std::size_t slash = repository.find('/');
  const std::string name = "models--" + repository.substr(0, slash) + "--" + repository.substr(slash + 1);
  folder_ = cache / name;
  locks_ = cache / ".locks" / name;
}

std::optional<std::string> RepositoryCache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  if (!is_plain_revision(revision)) return std::nullopt;
  auto text = read_file(folder_ / "refs" / revision, kMaxRefBytes);
  if (!text) return std::nullopt;
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  return is_commit(*text) ? std::optional(*text) : std::nullopt;
}

Result<> RepositoryCache::set_commit(const std::string& revision, const std::string& commit) const {
  if (is_commit(revision) || !is_plain_revision(revision)) return {};
  const fs::path path = folder_ / "refs" / revision;
  const fs::path fresh = fmt::format("{}.{}", path.string(), ::getpid());
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (!(std::ofstream(fresh) << commit).flush() || ::rename(fresh.c_str(), path.c_str()) != 0) {
    return system_failure(path);
  }
  return {};
}

Result<> RepositoryCache::link(const std::string& commit, const HubFile& file) const {
  const fs::path path = snapshot(commit) / file.path;
  const fs::path target = blob(file.digest).lexically_relative(path.parent_path());
  std::error_code error;
  if (fs::read_symlink(path, error) == target && !error) return {};
  fs::create_directories(path.parent_path(), error);
  const fs::path fresh = fmt::format("{}.{}", path.string(), ::getpid());
  fs::remove(fresh, error);
  if (::symlink(target.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), path.c_str()) != 0) {
    return system_failure(path);
  }
  return {};
}

std::vector<std::string> RepositoryCache::files_of(const std::string& commit) const {
  std::vector<std::string> files;
  std::error_code error;
  const fs::path root = snapshot(commit);
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code broken;
    if (fs::is_regular_file(entry->path(), broken)) files.push_back(entry->path().lexically_relative(root));
  }
  std::ranges::sort(files);
  return files;
}

fs::path model_path(const fs::path& snapshot, const std::vector<std::string>& files, const std::string& quant) {
  if (quant.empty() && has(files, "config.json") && (has(files, kIndex) || has(files, "model.safetensors"))) {
    return snapshot;
  }
  const auto parts = choose_gguf(files, quant);
  return parts ? snapshot / parts->front() : snapshot;
}

bool is_complete(const fs::path& snapshot, const std::vector<std::string>& files, const std::string& quant) {
  if (quant.empty() && has(files, "config.json") && has_weights(snapshot, files)) {
    return std::ranges::any_of(files, [](const std::string& file) {
      return file == "tokenizer.json" || file == "tokenizer.model" || file == "tekken.json" ||
             file.ends_with(".tiktoken");
    });
  }
  const auto parts = choose_gguf(files, quant);
  return parts && has_all_parts(*parts);
}

}  // namespace octet::hub
