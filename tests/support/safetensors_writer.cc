#include "tests/support/safetensors_writer.h"

#include <cstring>

#include "octet/base/json.h"

namespace octet::testing {

std::string safetensors_bytes(std::string_view header, std::string_view data) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += header;
  bytes += data;
  return bytes;
}

std::string safetensors_bytes(const std::vector<SafetensorsItem>& items) {
  Json header = Json::object();
  std::string data;
  for (const SafetensorsItem& item : items) {
    header[item.name] = {
        {"dtype", item.dtype}, {"shape", item.shape}, {"data_offsets", {data.size(), data.size() + item.data.size()}}};
    data += item.data;
  }
  return safetensors_bytes(dump_json(header), data);
}

}  // namespace octet::testing
