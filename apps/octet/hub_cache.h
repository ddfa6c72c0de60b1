// The cache that programs for the hub share: models--ORG--NAME with blobs (files by checksum), refs (commits by
// revision) and snapshots (links by commit and name), and .locks beside them.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/octet/hub_listing.h"

namespace octet::hub {

class RepositoryCache {
 public:
  RepositoryCache(std::filesystem::path cache, const std::string& repository);

  std::filesystem::path blob(const std::string& digest) const { return folder_ / "blobs" / digest; }
  std::filesystem::path lock(const std::string& digest) const { return locks_ / (digest + ".lock"); }
  std::filesystem::path snapshot(const std::string& commit) const { return folder_ / "snapshots" / commit; }
  const std::filesystem::path& folder() const { return folder_; }

  // The commit that a revision stood for when it was last fetched. A commit stands for itself.
  std::optional<std::string> commit_of(const std::string& revision) const;
  Result<> set_commit(const std::string& revision, const std::string& commit) const;
  // Makes the file of this commit a link to its blob.
  Result<> link(const std::string& commit, const HubFile& file) const;
  // Paths of a snapshot whose blobs are there.
  std::vector<std::string> files_of(const std::string& commit) const;

 private:
  std::filesystem::path folder_, locks_;
};

// What Octet opens in a snapshot: its folder, or its (first) GGUF file.
std::filesystem::path model_path(const std::filesystem::path& snapshot, const std::vector<std::string>& files,
                                 const std::string& quant);

// Is all there that a server needs: configuration, every shard of the weights, a tokenizer?
bool is_complete(const std::filesystem::path& snapshot, const std::vector<std::string>& files,
                 const std::string& quant);

}  // namespace octet::hub
