// One .safetensors file: header checked in full before anything is used. Format: github.com/huggingface/safetensors,
// README.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/file.h"
#include "octet/formats/stored_tensor.h"

namespace octet::formats {

using TensorMap = std::map<std::string, StoredTensor, std::less<>>;

class SafetensorsFile {
 public:
  // Errors name the file and, where one is at fault, the tensor. Refused: a header over 100,000,000 bytes or 2,000,000
  // JSON values (about 200,000 tensors), unknown keys in a tensor's entry, metadata other than strings, overlaps, holes
  // between tensors, and bytes after the last one.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  // The same over bytes already in memory, which the tensors point into; `where` stands in messages.
  static Result<TensorMap> parse(std::span<const std::byte> bytes, std::string_view where);

  const TensorMap& tensors() const { return tensors_; }
  const MappedFile& file() const { return file_; }

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  TensorMap tensors_;
};

}  // namespace octet::formats
