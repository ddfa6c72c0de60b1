#include "octet/formats/gguf_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "octet/base/utf8.h"
#include "octet/formats/message.h"
#include "octet/tensor/block_formats.h"

namespace octet::formats {
namespace {

constexpr int kMaxArrayDepth = 4;
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::uint64_t kMaxAlignment = 65536;
constexpr std::size_t kMinPairBytes = 8 + 4 + 1;        // key length, type, the smallest value
constexpr std::size_t kMinTensorBytes = 8 + 4 + 4 + 8;  // name length, dimensions, type, offset

struct TensorType {
  std::uint32_t id;
  DType dtype;
};
// ggml.h, enum ggml_type.
constexpr std::array kTensorTypes = {
    TensorType{0, DType::kF32},     TensorType{1, DType::kF16},    TensorType{2, DType::kQ4_0},
    TensorType{3, DType::kQ4_1},    TensorType{6, DType::kQ5_0},   TensorType{7, DType::kQ5_1},
    TensorType{8, DType::kQ8_0},    TensorType{10, DType::kQ2_K},  TensorType{11, DType::kQ3_K},
    TensorType{12, DType::kQ4_K},   TensorType{13, DType::kQ5_K},  TensorType{14, DType::kQ6_K},
    TensorType{20, DType::kIQ4_NL}, TensorType{21, DType::kIQ3_S}, TensorType{22, DType::kIQ2_S},
    TensorType{23, DType::kIQ4_XS}, TensorType{24, DType::kI8},    TensorType{25, DType::kI16},
    TensorType{26, DType::kI32},    TensorType{27, DType::kI64},   TensorType{28, DType::kF64},
    TensorType{30, DType::kBF16},   TensorType{39, DType::kMXFP4},
};

// Ids of the same list that are never read here: only their names, for messages.
struct OtherType {
  std::uint32_t id;
  const char* name;
};
constexpr std::array kOtherTypes = {
    OtherType{9, "Q8_1"},     OtherType{15, "Q8_K"},  OtherType{16, "IQ2_XXS"}, OtherType{17, "IQ2_XS"},
    OtherType{18, "IQ3_XXS"}, OtherType{19, "IQ1_S"}, OtherType{29, "IQ1_M"},   OtherType{34, "TQ1_0"},
    OtherType{35, "TQ2_0"},   OtherType{40, "NVFP4"}, OtherType{41, "Q1_0"},
};

std::string unsupported_type(std::uint32_t id) {
  const auto found = std::ranges::find(kOtherTypes, id, &OtherType::id);
  const std::string name = found == kOtherTypes.end() ? "" : fmt::format(" ({})", found->name);
  return fmt::format("type {}{} is not supported; supported are {}", id, name, decodable_types());
}

std::optional<DType> tensor_dtype(std::uint32_t id) {
  const auto found = std::ranges::find(kTensorTypes, id, &TensorType::id);
  return found == kTensorTypes.end() ? std::nullopt : std::optional(found->dtype);
}

bool known(std::uint32_t type) { return type <= static_cast<std::uint32_t>(GgufType::kF64); }

// Moves over `count` items of a type; the error tells what does not fit.
Result<> skip_items(ByteCursor& cursor, GgufType type, std::uint64_t count, int depth) {
  std::span<const std::byte> raw;
  if (const std::size_t width = gguf_item_bytes(type); width > 0) {
    if (count > cursor.rest().size() / width || !cursor.bytes(count * width, raw)) {
      return fail(ErrorCode::kInvalid, "{} items of {} bytes, but only {} bytes are left", count, width,
                  cursor.rest().size());
    }
    if (type == GgufType::kBool && std::ranges::any_of(raw, [](std::byte b) { return b > std::byte{1}; })) {
      return fail(ErrorCode::kInvalid, "a bool that is neither 0 nor 1");
    }
    return {};
  }
  const std::size_t smallest = type == GgufType::kString ? 8 : 12;
  if (count > cursor.rest().size() / smallest) {
    return fail(ErrorCode::kInvalid, "{} items, but only {} bytes are left", count, cursor.rest().size());
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    if (type == GgufType::kString) {
      std::string_view text;
      if (!cursor.string(text)) return fail(ErrorCode::kInvalid, "a string runs past the end of the file");
      continue;
    }
    std::uint32_t element = 0;
    std::uint64_t items = 0;
    if (!cursor.value(element) || !cursor.value(items)) return fail(ErrorCode::kInvalid, "the file ends in an array");
    if (!known(element)) return fail(ErrorCode::kInvalid, "an array of the unknown type {}", element);
    if (depth >= kMaxArrayDepth) return fail(ErrorCode::kInvalid, "arrays nested deeper than {}", kMaxArrayDepth);
    OCTET_TRY_VOID(skip_items(cursor, static_cast<GgufType>(element), items, depth + 1));
  }
  return {};
}

Result<GgufValue> read_value(ByteCursor& cursor) {
  std::uint32_t type = 0;
  if (!cursor.value(type)) return fail(ErrorCode::kInvalid, "the file ends before its type");
  if (!known(type)) return fail(ErrorCode::kInvalid, "unknown type {}", type);
  GgufValue value;
  value.type = value.element = static_cast<GgufType>(type);
  if (value.type == GgufType::kArray) {
    std::uint32_t element = 0;
    if (!cursor.value(element) || !cursor.value(value.count)) {
      return fail(ErrorCode::kInvalid, "the file ends in an array");
    }
    if (!known(element)) return fail(ErrorCode::kInvalid, "an array of the unknown type {}", element);
    value.element = static_cast<GgufType>(element);
  }
  const auto from = cursor.rest();
  OCTET_TRY_VOID(skip_items(cursor, value.element, value.count, 1));
  value.data = from.first(from.size() - cursor.rest().size());
  return value;
}

}  // namespace

std::size_t gguf_item_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

Result<> GgufReader::read() {
  OCTET_TRY_VOID(read_head());
  for (std::uint64_t i = 0; i < pairs_; ++i) OCTET_TRY_VOID(read_pair());
  OCTET_TRY_VOID(read_alignment());
  for (std::uint64_t i = 0; i < tensors_; ++i) OCTET_TRY_VOID(read_tensor_info());
  return place_tensors();
}

Result<> GgufReader::read_head() {
  std::span<const std::byte> magic;
  std::uint32_t version = 0;
  if (!cursor_.bytes(4, magic) || std::memcmp(magic.data(), "GGUF", 4) != 0) {
    return fail(ErrorCode::kInvalid, "not a GGUF file");
  }
  if (!cursor_.value(version)) return fail(ErrorCode::kInvalid, "the file ends in its head");
  if (version != 2 && version != 3) {
    const bool swapped = __builtin_bswap32(version) <= 3 && version != 0;
    return fail(ErrorCode::kUnsupported, "version {}{}; versions 2 and 3 are supported", version,
                swapped ? " (a big-endian file)" : "");
  }
  if (!cursor_.value(tensors_) || !cursor_.value(pairs_)) return fail(ErrorCode::kInvalid, "the file ends in its head");
  const std::size_t left = cursor_.rest().size();
  if (pairs_ > left / kMinPairBytes) {
    return fail(ErrorCode::kInvalid, "{} metadata pairs, but only {} bytes follow", pairs_, left);
  }
  if (tensors_ > left / kMinTensorBytes) {
    return fail(ErrorCode::kInvalid, "{} tensors, but only {} bytes follow", tensors_, left);
  }
  return {};
}

Result<> GgufReader::read_pair() {
  std::string_view key;
  if (!cursor_.string(key)) {
    return fail(ErrorCode::kInvalid, "the file ends in metadata key {} of {}", file_.metadata_.size() + 1, pairs_);
  }
  if (key.empty()) return fail(ErrorCode::kInvalid, "an empty metadata key");
  if (!is_valid_utf8(key)) return fail(ErrorCode::kInvalid, "metadata key \"{}\" is not valid UTF-8", printable(key));
  auto value = read_value(cursor_);
  if (!value) return within(fmt::format("key \"{}\"", printable(key)), std::move(value).error());
  if (!file_.metadata_.emplace(key, *value).second) {
    return fail(ErrorCode::kInvalid, "key \"{}\" stands twice", printable(key));
  }
  return {};
}

Result<> GgufReader::read_alignment() {
  const GgufValue* value = file_.find("general.alignment");
  if (value == nullptr) return {};
  if (value->type != GgufType::kU32) {
    return fail(ErrorCode::kInvalid, "key \"general.alignment\" is {}, not u32", value->type_name());
  }
  std::uint32_t alignment = 0;
  std::memcpy(&alignment, value->data.data(), sizeof alignment);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    return fail(ErrorCode::kInvalid, "key \"general.alignment\" is {}, not a power of two up to {}", alignment,
                kMaxAlignment);
  }
  alignment_ = alignment;
  return {};
}

namespace {

// dims: fastest first, as stored. The bytes of the tensor, all counts below 2^63.
Result<std::uint64_t> tensor_bytes(DType dtype, std::span<const std::uint64_t> dims) {
  const DTypeInfo& info = dtype_info(dtype);
  std::int64_t values = 1;
  for (const std::uint64_t dimension : dims) {
    if (dimension == 0) return fail(ErrorCode::kInvalid, "a dimension of 0");
    if (__builtin_mul_overflow(values, dimension, &values)) {
      return fail(ErrorCode::kInvalid, "dimensions [{}] are too large", fmt::join(dims, ", "));
    }
  }
  if (dims[0] % static_cast<std::uint64_t>(info.block_values) != 0) {
    return fail(ErrorCode::kInvalid, "rows of {} values are no whole number of {} blocks of {}", dims[0], info.name,
                info.block_values);
  }
  std::int64_t bits = 0;
  if (__builtin_mul_overflow(values / info.block_values, info.block_bits, &bits)) {
    return fail(ErrorCode::kInvalid, "dimensions [{}] are too large", fmt::join(dims, ", "));
  }
  return static_cast<std::uint64_t>(bits) / 8;
}

}  // namespace

Result<> GgufReader::read_tensor_info() {
  std::string_view name;
  if (!cursor_.string(name)) {
    return fail(ErrorCode::kInvalid, "the file ends in the name of tensor {} of {}", placements_.size() + 1, tensors_);
  }
  const auto bad = [&](ErrorCode code, std::string message) {
    return fail(code, "tensor {}: {}", printable(name), message);
  };
  if (!is_valid_utf8(name)) return bad(ErrorCode::kInvalid, "its name is not valid UTF-8");
  std::uint32_t rank = 0, type = 0;
  if (!cursor_.value(rank)) return bad(ErrorCode::kInvalid, "the file ends in its entry");
  if (rank < 1 || rank > kMaxDimensions) {
    return bad(ErrorCode::kInvalid, fmt::format("{} dimensions, not 1 to {}", rank, kMaxDimensions));
  }
  std::array<std::uint64_t, kMaxDimensions> dims{};
  Placement placement;
  bool complete = true;
  for (std::uint32_t i = 0; i < rank; ++i) complete = complete && cursor_.value(dims[i]);
  if (!complete || !cursor_.value(type) || !cursor_.value(placement.offset)) {
    return bad(ErrorCode::kInvalid, "the file ends in its entry");
  }
  const auto dtype = tensor_dtype(type);
  if (!dtype) return bad(ErrorCode::kUnsupported, unsupported_type(type));
  auto bytes = tensor_bytes(*dtype, std::span(dims).first(rank));
  if (!bytes) return bad(bytes.error().code, bytes.error().message);
  placement.bytes = *bytes;
  const auto [slot, fresh] = file_.tensors_.try_emplace(std::string(name));
  if (!fresh) return bad(ErrorCode::kInvalid, "the name stands twice");
  StoredTensor& tensor = slot->second;
  tensor.name = name;
  tensor.dtype = *dtype;
  for (std::uint32_t i = rank; i > 0; --i) tensor.shape.push_back(static_cast<std::int64_t>(dims[i - 1]));
  placement.tensor = &tensor;
  placements_.push_back(placement);
  return {};
}

Result<> GgufReader::place_tensors() {
  const std::size_t head = all_.size() - cursor_.rest().size();
  const std::size_t padding = (alignment_ - head % alignment_) % alignment_;
  const auto data = cursor_.rest().subspan(std::min(padding, cursor_.rest().size()));
  for (const Placement& placement : placements_) {
    const std::string name = printable(placement.tensor->name);
    if (placement.offset % alignment_ != 0) {
      return fail(ErrorCode::kInvalid, "tensor {}: offset {} is no multiple of the alignment {}", name,
                  placement.offset, alignment_);
    }
    if (placement.offset > data.size() || placement.bytes > data.size() - placement.offset) {
      return fail(ErrorCode::kInvalid, "tensor {}: {} bytes at offset {}, but the file holds {} bytes of data", name,
                  placement.bytes, placement.offset, data.size());
    }
    placement.tensor->data =
        data.subspan(static_cast<std::size_t>(placement.offset), static_cast<std::size_t>(placement.bytes));
  }
  std::ranges::sort(placements_, {}, &Placement::offset);
  for (std::size_t i = 1; i < placements_.size(); ++i) {
    const Placement &before = placements_[i - 1], &after = placements_[i];
    if (after.offset < before.offset + before.bytes) {
      return fail(ErrorCode::kInvalid, "tensor {} starts inside tensor {}", printable(after.tensor->name),
                  printable(before.tensor->name));
    }
  }
  return {};
}

}  // namespace octet::formats
