// Brings blobs into the cache: several ranges at once, each blob once, whoever else fetches it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/octet/hub_cache.h"
#include "apps/octet/hub_listing.h"
#include "apps/octet/hub_settings.h"

namespace octet::hub {

struct FetchPlan {
  std::string repository, revision, commit;
  std::vector<HubFile> files;
  int connections = 8;
  std::int64_t range_bytes = std::int64_t{64} << 20;
};

// Fetches what is missing, small files first, checks it, and links it into the snapshot. What is incomplete at an
// error or a stop stays for the next time. Blobs that another process fetches are waited for, and taken over if it
// gives up. Shows its progress on standard error.
Result<> fetch_files(const FetchPlan& plan, const Settings& settings, const RepositoryCache& cache);

}  // namespace octet::hub
