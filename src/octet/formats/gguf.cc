#include "octet/formats/gguf.h"

#include <cstring>
#include <limits>
#include <utility>

#include "octet/formats/gguf_reader.h"
#include "octet/formats/message.h"

namespace octet::formats {
namespace {

const char* type_text(GgufType type) {
  switch (type) {
    case GgufType::kU8:
      return "u8";
    case GgufType::kI8:
      return "i8";
    case GgufType::kU16:
      return "u16";
    case GgufType::kI16:
      return "i16";
    case GgufType::kU32:
      return "u32";
    case GgufType::kI32:
      return "i32";
    case GgufType::kF32:
      return "f32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kU64:
      return "u64";
    case GgufType::kI64:
      return "i64";
    case GgufType::kF64:
      return "f64";
  }
  return "?";
}

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Item `index` of an integer type; false for another type or a value of 2^63 and more.
bool load_integer(GgufType type, std::span<const std::byte> data, std::size_t index, std::int64_t& out) {
  switch (type) {
    case GgufType::kU8:
      out = load<std::uint8_t>(data, index);
      return true;
    case GgufType::kI8:
      out = load<std::int8_t>(data, index);
      return true;
    case GgufType::kU16:
      out = load<std::uint16_t>(data, index);
      return true;
    case GgufType::kI16:
      out = load<std::int16_t>(data, index);
      return true;
    case GgufType::kU32:
      out = load<std::uint32_t>(data, index);
      return true;
    case GgufType::kI32:
      out = load<std::int32_t>(data, index);
      return true;
    case GgufType::kI64:
      out = load<std::int64_t>(data, index);
      return true;
    case GgufType::kU64: {
      const auto value = load<std::uint64_t>(data, index);
      out = static_cast<std::int64_t>(value);
      return value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    }
    default:
      return false;
  }
}

bool load_number(GgufType type, std::span<const std::byte> data, std::size_t index, double& out) {
  if (type == GgufType::kF32) {
    out = load<float>(data, index);
  } else if (type == GgufType::kF64) {
    out = load<double>(data, index);
  } else {
    return false;
  }
  return true;
}

std::unexpected<Error> missing(const std::string& where, std::string_view key) {
  return fail(ErrorCode::kNotFound, "{}: key \"{}\" is missing", where, printable(key));
}

std::unexpected<Error> mismatch(const std::string& where, std::string_view key, const GgufValue& value,
                                std::string_view expected) {
  return fail(ErrorCode::kInvalid, "{}: key \"{}\" is {}, expected {}", where, printable(key), value.type_name(),
              expected);
}

}  // namespace

std::string GgufValue::type_name() const {
  return type == GgufType::kArray ? fmt::format("array of {}", type_text(element)) : type_text(type);
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes, std::string where) {
  GgufFile file;
  file.where_ = std::move(where);
  if (auto read = GgufReader(bytes, file).read(); !read) return within(file.where_, std::move(read).error());
  return file;
}

Result<GgufFile> GgufFile::open(const std::filesystem::path& path) {
  OCTET_TRY(MappedFile mapped, MappedFile::open(path));
  OCTET_TRY(GgufFile file, parse(mapped.bytes(), path.string()));
  file.file_ = std::move(mapped);
  return file;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

Result<std::int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(where_, key);
  std::int64_t out = 0;
  if (!load_integer(value->type, value->data, 0, out)) return mismatch(where_, key, *value, "an integer below 2^63");
  return out;
}

Result<double> GgufFile::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(where_, key);
  double out = 0;
  if (!load_number(value->type, value->data, 0, out)) return mismatch(where_, key, *value, "f32 or f64");
  return out;
}

Result<std::string> GgufFile::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(where_, key);
  std::string_view text;
  if (value->type != GgufType::kString || !ByteCursor(value->data).string(text)) {
    return mismatch(where_, key, *value, "string");
  }
  return std::string(text);
}

Result<bool> GgufFile::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(where_, key);
  if (value->type != GgufType::kBool) return mismatch(where_, key, *value, "bool");
  return value->data[0] != std::byte{0};
}

Result<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(where_, key);
  if (value->type != GgufType::kArray || value->element != GgufType::kString) {
    return mismatch(where_, key, *value, "array of string");
  }
  ByteCursor cursor(value->data);
  std::vector<std::string_view> out(static_cast<std::size_t>(value->count));
  for (auto& text : out) {
    if (!cursor.string(text)) return mismatch(where_, key, *value, "complete strings");
  }
  return out;
}

Result<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(where_, key);
  std::vector<std::int64_t> out(value->type == GgufType::kArray && gguf_item_bytes(value->element) > 0
                                    ? static_cast<std::size_t>(value->count)
                                    : 0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!load_integer(value->element, value->data, i, out[i])) {
      return mismatch(where_, key, *value, "array of integers below 2^63");
    }
  }
  if (out.size() != value->count || value->type != GgufType::kArray) {
    return mismatch(where_, key, *value, "array of integers");
  }
  return out;
}

Result<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return missing(where_, key);
  if (value->type != GgufType::kArray || (value->element != GgufType::kF32 && value->element != GgufType::kF64)) {
    return mismatch(where_, key, *value, "array of f32 or f64");
  }
  std::vector<double> out(static_cast<std::size_t>(value->count));
  for (std::size_t i = 0; i < out.size(); ++i) load_number(value->element, value->data, i, out[i]);
  return out;
}

}  // namespace octet::formats
