// Builds safetensors files for tests.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octet::testing {

struct SafetensorsItem {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::string data;
};

// Tensors in this order, one after the other.
std::string safetensors_bytes(const std::vector<SafetensorsItem>& items);
// Any header text, with its right length before it.
std::string safetensors_bytes(std::string_view header, std::string_view data);

}  // namespace octet::testing
