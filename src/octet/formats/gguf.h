// One GGUF file (version 2 or 3, little endian): metadata and tensors, every count and offset checked before use.
// Format: github.com/ggml-org/ggml, docs/gguf.md.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/file.h"
#include "octet/formats/stored_tensor.h"

namespace octet::formats {

// As numbered in the file.
enum class GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

// A metadata value as it lies in the file, checked to lie inside it. GgufFile's typed access decodes it.
struct GgufValue {
  GgufType type = GgufType::kU8;
  GgufType element = GgufType::kU8;  // arrays: the items' type
  std::uint64_t count = 1;           // arrays: the number of items
  std::span<const std::byte> data;
  std::string type_name() const;  // for messages: "u32", "array of string"
};

class GgufFile {
 public:
  // Errors name the file and the key or tensor. Arrays may nest four deep; what is no known key is ignored.
  static Result<GgufFile> open(const std::filesystem::path& path);
  // Over bytes that outlive it; `where` stands in messages. For tests and fuzzing.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string where);

  // Null where the file has no such key.
  const GgufValue* find(std::string_view key) const;
  // Typed access. A missing key is a kNotFound error that names it; another type is an error that names key and type.
  // Integers are taken of every width, numbers from f32 and f64; nothing else is converted.
  Result<std::int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<std::string> string(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::vector<std::string_view>> strings(std::string_view key) const;  // into the file
  Result<std::vector<std::int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;

  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const std::string& where() const { return where_; }
  const MappedFile* file() const { return file_ ? &*file_ : nullptr; }

 private:
  friend class GgufReader;
  GgufFile() = default;
  std::optional<MappedFile> file_;
  std::string where_;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace octet::formats
