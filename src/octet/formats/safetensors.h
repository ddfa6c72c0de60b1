// One .safetensors file: header checked in full before anything is used.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/file.h"
#include "octet/formats/stored_tensor.h"

namespace octet::formats {

class SafetensorsFile {
 public:
  // Errors name the file and, where one is at fault, the tensor.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  // Reads only the header of bytes already in memory; `where` stands in messages. For tests and fuzzing.
  static Result<std::map<std::string, StoredTensor, std::less<>>> parse(std::span<const std::byte> bytes,
                                                                        std::string_view where);

  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const MappedFile& file() const { return file_; }

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace octet::formats
