#include "octet/formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "octet/base/json.h"
#include "octet/base/utf8.h"
#include "octet/formats/message.h"

namespace octet::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "weight files are read in place");

constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxHeaderValues = 2'000'000;
constexpr std::size_t kMaxDimensions = 8;

std::optional<DType> dtype_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    if (dtype_info(static_cast<DType>(i)).name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

// An integer in [0, 2^63).
std::optional<std::int64_t> natural(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<std::uint64_t>();
  if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

Result<DType> read_dtype(const Json& entry) {
  const auto value = entry.find("dtype");
  if (value == entry.end()) return fail(ErrorCode::kInvalid, "no dtype");
  if (!value->is_string()) return fail(ErrorCode::kInvalid, "dtype is not a string");
  const auto& name = value->get_ref<const std::string&>();
  const auto dtype = dtype_named(name);
  if (!dtype) return fail(ErrorCode::kUnsupported, "dtype \"{}\" is not known", printable(name));
  return *dtype;
}

Result<std::vector<std::int64_t>> read_shape(const Json& entry) {
  const auto value = entry.find("shape");
  if (value == entry.end()) return fail(ErrorCode::kInvalid, "no shape");
  if (!value->is_array()) return fail(ErrorCode::kInvalid, "shape is not a list");
  if (value->size() > kMaxDimensions) {
    return fail(ErrorCode::kInvalid, "shape has {} dimensions, more than {}", value->size(), kMaxDimensions);
  }
  std::vector<std::int64_t> shape;
  for (const Json& item : *value) {
    const auto dimension = natural(item);
    if (!dimension) return fail(ErrorCode::kInvalid, "shape holds {}, not a size", printable(dump_json(item)));
    shape.push_back(*dimension);
  }
  return shape;
}

// Bytes that a tensor of this shape takes, or an error where the count has no room in 63 bits.
Result<std::int64_t> bytes_needed(DType dtype, std::span<const std::int64_t> shape) {
  std::int64_t bits = dtype_info(dtype).block_bits;
  for (const std::int64_t dimension : shape) {
    if (__builtin_mul_overflow(bits, dimension, &bits)) {
      return fail(ErrorCode::kInvalid, "shape {} is too large", shape_text(shape));
    }
  }
  if (bits % 8 != 0) {
    return fail(ErrorCode::kInvalid, "shape {} of {} is no whole number of bytes", shape_text(shape),
                dtype_info(dtype).name);
  }
  return bits / 8;
}

struct Extent {
  std::int64_t begin = 0, end = 0;
  const StoredTensor* tensor = nullptr;
};

Result<Extent> read_offsets(const Json& entry, std::size_t data_size) {
  const auto value = entry.find("data_offsets");
  if (value == entry.end()) return fail(ErrorCode::kInvalid, "no data_offsets");
  if (!value->is_array() || value->size() != 2) {
    return fail(ErrorCode::kInvalid, "data_offsets is not a list of two offsets");
  }
  const auto begin = natural((*value)[0]), end = natural((*value)[1]);
  if (!begin || !end) {
    return fail(ErrorCode::kInvalid, "data_offsets {} are not offsets", printable(dump_json(*value)));
  }
  if (*begin > *end) return fail(ErrorCode::kInvalid, "data_offsets begin at {}, after their end {}", *begin, *end);
  if (static_cast<std::uint64_t>(*end) > data_size) {
    return fail(ErrorCode::kInvalid, "data ends at byte {}, but the file holds {} bytes of data", *end, data_size);
  }
  return Extent{*begin, *end, nullptr};
}

Result<Extent> read_entry(const Json& entry, std::span<const std::byte> data, StoredTensor& tensor) {
  if (!entry.is_object()) return fail(ErrorCode::kInvalid, "its entry is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return fail(ErrorCode::kInvalid, "unknown key \"{}\"", printable(key));
    }
  }
  OCTET_TRY(tensor.dtype, read_dtype(entry));
  OCTET_TRY(tensor.shape, read_shape(entry));
  OCTET_TRY(const Extent extent, read_offsets(entry, data.size()));
  OCTET_TRY(const std::int64_t bytes, bytes_needed(tensor.dtype, tensor.shape));
  if (extent.end - extent.begin != bytes) {
    return fail(ErrorCode::kInvalid, "{} of {} takes {} bytes, but data_offsets span {}", shape_text(tensor.shape),
                dtype_info(tensor.dtype).name, bytes, extent.end - extent.begin);
  }
  tensor.data = data.subspan(static_cast<std::size_t>(extent.begin), static_cast<std::size_t>(bytes));
  return extent;
}

Result<> check_metadata(const Json& metadata) {
  if (!metadata.is_object()) return fail(ErrorCode::kInvalid, "__metadata__ is not an object");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) return fail(ErrorCode::kInvalid, "__metadata__ \"{}\" is not a string", printable(key));
  }
  return {};
}

// Tensors must follow one another without overlap or hole and fill the data.
Result<> check_extents(std::vector<Extent>& extents, std::size_t data_size) {
  std::ranges::sort(extents, {}, [](const Extent& extent) { return std::pair(extent.begin, extent.end); });
  std::int64_t end = 0;
  const Extent* before = nullptr;
  for (const Extent& extent : extents) {
    if (extent.begin < end) {
      return fail(ErrorCode::kInvalid, "tensor {} starts at byte {}, inside tensor {}", printable(extent.tensor->name),
                  extent.begin, printable(before->tensor->name));
    }
    if (extent.begin > end) {
      return fail(ErrorCode::kInvalid, "{} unused bytes before tensor {}", extent.begin - end,
                  printable(extent.tensor->name));
    }
    end = extent.end;
    before = &extent;
  }
  if (static_cast<std::size_t>(end) != data_size) {
    return fail(ErrorCode::kInvalid, "{} bytes after the last tensor", data_size - static_cast<std::size_t>(end));
  }
  return {};
}

Result<TensorMap> parse_header(std::string_view header, std::span<const std::byte> data) {
  if (!header.starts_with('{')) return fail(ErrorCode::kInvalid, "the header does not start with {{");
  JsonLimits limits;
  limits.max_bytes = kMaxHeaderBytes;
  limits.max_values = kMaxHeaderValues;
  auto parsed = parse_json(header, limits);
  if (!parsed) return within("header", std::move(parsed).error());
  TensorMap tensors;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : parsed->items()) {
    if (name == "__metadata__") {
      OCTET_TRY_VOID(check_metadata(entry));
      continue;
    }
    StoredTensor& tensor = tensors[name];
    tensor.name = name;
    auto extent = read_entry(entry, data, tensor);
    if (!extent) return within(fmt::format("tensor {}", printable(name)), std::move(extent).error());
    extents.push_back({extent->begin, extent->end, &tensor});
  }
  OCTET_TRY_VOID(check_extents(extents, data.size()));
  return tensors;
}

Result<TensorMap> parse_file(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) {
    return fail(ErrorCode::kInvalid, "{} bytes, too short for a safetensors file", bytes.size());
  }
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto rest = bytes.subspan(sizeof length);
  if (length > rest.size()) {
    return fail(ErrorCode::kInvalid, "header length {}, but only {} bytes follow", length, rest.size());
  }
  if (length > kMaxHeaderBytes) {
    return fail(ErrorCode::kExhausted, "header of {} bytes, more than the limit of {}", length, kMaxHeaderBytes);
  }
  const std::string_view header(reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(length));
  return parse_header(header, rest.subspan(static_cast<std::size_t>(length)));
}

}  // namespace

Result<TensorMap> SafetensorsFile::parse(std::span<const std::byte> bytes, std::string_view where) {
  auto tensors = parse_file(bytes);
  if (!tensors) return within(where, std::move(tensors).error());
  return tensors;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  OCTET_TRY(MappedFile mapped, MappedFile::open(path));
  SafetensorsFile file(std::move(mapped));
  OCTET_TRY(file.tensors_, parse(file.file_.bytes(), path.string()));
  return file;
}

}  // namespace octet::formats
