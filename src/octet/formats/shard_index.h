// model.safetensors.index.json: which shard holds which tensor.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "octet/base/error.h"

namespace octet::formats {

struct ShardIndex {
  std::map<std::string, std::string, std::less<>> shards;  // tensor -> file name
  std::optional<std::int64_t> total_size;                  // as claimed
};

// Shards are plain file names in the index's own folder; anything else is refused. Errors name the file and the tensor.
Result<ShardIndex> read_shard_index(const std::filesystem::path& path);
// The same from text; `where` stands in messages.
Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& where);

}  // namespace octet::formats
