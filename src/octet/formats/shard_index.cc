#include "octet/formats/shard_index.h"

#include "octet/base/file.h"
#include "octet/base/json.h"
#include "octet/formats/message.h"

namespace octet::formats {
namespace {

constexpr std::size_t kMaxIndexBytes = std::size_t{64} << 20;

bool plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& where) {
  JsonLimits limits;
  limits.max_bytes = kMaxIndexBytes;
  auto parsed = parse_json(text, limits);
  if (!parsed) return within(where, std::move(parsed).error());
  const auto map = parsed->is_object() ? parsed->find("weight_map") : parsed->end();
  if (!parsed->is_object() || map == parsed->end() || !map->is_object()) {
    return fail(ErrorCode::kInvalid, "{}: weight_map is missing or no object", where);
  }
  if (map->empty()) return fail(ErrorCode::kInvalid, "{}: weight_map is empty", where);
  ShardIndex index;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string() || !plain_file_name(shard.get_ref<const std::string&>())) {
      return fail(ErrorCode::kInvalid, "{}: weight_map: {}: {} is no name of a file in this folder", where,
                  printable(tensor), printable(dump_json(shard)));
    }
    index.shards.emplace(tensor, shard.get<std::string>());
  }
  const auto metadata = parsed->find("metadata");
  if (metadata != parsed->end() && metadata->is_object()) {
    const auto total = metadata->find("total_size");
    if (total != metadata->end() && total->is_number_integer()) index.total_size = total->get<std::int64_t>();
  }
  return index;
}

Result<ShardIndex> read_shard_index(const std::filesystem::path& path) {
  OCTET_TRY(const std::string text, read_file(path, kMaxIndexBytes));
  return parse_shard_index(text, path.string());
}

}  // namespace octet::formats
