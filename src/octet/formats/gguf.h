// One GGUF file (version 2 or 3, little endian): metadata and tensors, every count and offset checked before use.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/file.h"
#include "octet/formats/stored_tensor.h"

namespace octet::formats {

// Integers of every width arrive as int64 or uint64, floats as double. Arrays of arrays are skipped when read.
using GgufArray =
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string_view>, std::vector<bool>>;
struct GgufValue {
  std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view, GgufArray>
      value;              // strings point into the file
  std::string_view type;  // as stored, for messages: "u32", "string", "array of i32"
};

class GgufFile {
 public:
  // Errors name the file and the key or tensor.
  static Result<GgufFile> open(const std::filesystem::path& path);
  // Over bytes that outlive it; `where` stands in messages. For tests and fuzzing.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string where);

  const GgufValue* find(std::string_view key) const;
  // Typed access: a missing key gives nullopt-like NotFound errors that name the key; a wrong type is an error that
  // names key and type.
  Result<std::int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<std::string> string(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::vector<std::string_view>> strings(std::string_view key) const;
  Result<std::vector<std::int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;

  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const std::string& where() const { return where_; }
  const MappedFile* file() const { return file_ ? &*file_ : nullptr; }

 private:
  GgufFile() = default;
  std::optional<MappedFile> file_;
  std::string where_;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace octet::formats
