// Files that someone else wrote: opened without blocking, mapped or read whole.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "octet/base/error.h"

namespace octet {

// A read-only mapping of a regular file. Moves, never copies.
class MappedFile {
 public:
  // Follows symbolic links; a FIFO, device, folder or link loop is an error that names the path, at once.
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Brings the pages of this range into memory. An error of the file system (a read that fails, a file that was cut
  // short since it was opened) names the path; touching such a page would end the process.
  Result<> read(std::span<const std::byte> range) const;
  // The pages of this range have been consumed (packed elsewhere) and may be dropped from memory.
  void release(std::span<const std::byte> range) const;
  // Reads the range into the page cache in large sequential requests.
  void prefetch(std::span<const std::byte> range) const;

 private:
  MappedFile() = default;
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The whole of a regular file of at most max_bytes.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes);

}  // namespace octet
