// A file that comes in ranges, on disk while it is incomplete: its bytes at their places, and behind them how far each
// range has come. So an interrupted fetch goes on where it was, whatever ended it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "octet/base/error.h"

namespace octet::hub {

class PartFile {
 public:
  struct Part {
    std::int64_t begin = 0, end = 0;  // of the file
    std::int64_t done = 0;            // bytes from begin on that are there
  };

  // Goes on with the file at `path` if one is there (then with its own ranges), else makes one with ranges of
  // part_bytes. `prefix`, where that exists and path does not, is the beginning of the same file as another program
  // left it, and is taken over. The caller holds the blob's lock.
  static Result<PartFile> open(const std::filesystem::path& path, const std::filesystem::path& prefix,
                               std::int64_t size, std::int64_t part_bytes);
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  const std::vector<Part>& parts() const { return parts_; }
  std::int64_t done() const;
  // Adds bytes to a part. Different parts may be written by different threads at once.
  Result<> append(std::size_t part, std::span<const std::byte> bytes);
  // Cuts the notes off and brings the file to the disk. All parts must be done.
  Result<> finish();
  const std::filesystem::path& path() const { return path_; }

 private:
  PartFile(std::filesystem::path path, int descriptor, std::int64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  bool read_notes();
  Result<> make_notes(std::int64_t part_bytes, std::int64_t done);
  Result<> write(std::int64_t at, std::span<const std::byte> bytes) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::vector<Part> parts_;
};

}  // namespace octet::hub
