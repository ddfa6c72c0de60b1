// What a repository of a hub holds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/octet/hub_digest.h"
#include "apps/octet/hub_transfer.h"

namespace octet::hub {

struct HubFile {
  std::string path;  // relative, without . and .. components
  std::int64_t size = 0;
  std::string digest;  // its blob's name in the cache
  DigestKind kind = DigestKind::kSha256;
};

struct Listing {
  std::string commit;  // 40 hexadecimal digits
  std::vector<HubFile> files;
};

// ORG/NAME as the hub allows it.
bool is_repository_name(std::string_view name);
bool is_commit(std::string_view revision);

// The files at a branch, tag or commit. Nothing in the answer is trusted: paths stay below the repository, digests are
// digests. Errors say what to do about a gated, private or missing repository.
Result<Listing> list_repository(Connection& connection, const Settings& settings, const std::string& repository,
                                const std::string& revision);

// What an error status of the hub means.
Error hub_error(const Reply& reply, const Settings& settings, const std::string& repository,
                const std::string& revision);

}  // namespace octet::hub
