#include "apps/octet/hub_part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "apps/octet/pull_signals.h"
#include "octet/base/check.h"

namespace octet::hub {
namespace {

// The notes: a mark, the length of a range, and for each range the bytes that it has.
constexpr std::int64_t kMark = 0x315452415054434f;
constexpr std::int64_t kHeadBytes = 2 * sizeof(std::int64_t);
constexpr std::int64_t kMaxParts = 1 << 20;

std::int64_t count_parts(std::int64_t size, std::int64_t part_bytes) { return (size + part_bytes - 1) / part_bytes; }

std::int64_t note_at(std::int64_t size, std::size_t part) {
  return size + kHeadBytes + static_cast<std::int64_t>(part * sizeof(std::int64_t));
}

}  // namespace

Result<PartFile> PartFile::open(const std::filesystem::path& path, const std::filesystem::path& prefix,
                                std::int64_t size, std::int64_t part_bytes) {
  OCTET_CHECK(size > 0 && part_bytes > 0);
  std::error_code error;
  bool adopted = false;
  if (!std::filesystem::exists(path, error) && std::filesystem::exists(prefix, error)) {
    adopted = ::rename(prefix.c_str(), path.c_str()) == 0;
  }
  PartFile file(path, ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666), size);
  if (file.descriptor_ < 0) return system_failure(path);
  if (file.read_notes()) return file;
  struct stat about = {};
  if (::fstat(file.descriptor_, &about) != 0) return system_failure(path);
  // What another program left are the file's first bytes. A file of full length without notes waits for its checksum.
  const bool counts = (adopted && about.st_size <= size) || about.st_size == size;
  const std::int64_t done = counts ? about.st_size : 0;
  OCTET_TRY_VOID(file.make_notes(std::max(part_bytes, count_parts(size, kMaxParts)), done));
  return file;
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      parts_(std::move(other.parts_)) {}

PartFile::~PartFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool PartFile::read_notes() {
  std::array<std::int64_t, 2> head{};
  if (::pread(descriptor_, head.data(), kHeadBytes, size_) != kHeadBytes || head[0] != kMark || head[1] < 1) {
    return false;
  }
  const std::int64_t count = count_parts(size_, head[1]);
  if (count > kMaxParts) return false;
  std::vector<std::int64_t> notes(static_cast<std::size_t>(count));
  const auto bytes = static_cast<ssize_t>(notes.size() * sizeof(std::int64_t));
  if (::pread(descriptor_, notes.data(), static_cast<std::size_t>(bytes), note_at(size_, 0)) != bytes) return false;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    Part part{.begin = static_cast<std::int64_t>(i) * head[1]};
    part.end = std::min(part.begin + head[1], size_);
    part.done = notes[i];
    if (part.done < 0 || part.done > part.end - part.begin) return false;
    parts_.push_back(part);
  }
  return true;
}

Result<> PartFile::make_notes(std::int64_t part_bytes, std::int64_t done) {
  std::vector<std::int64_t> notes = {kMark, part_bytes};
  parts_.clear();
  for (std::int64_t begin = 0; begin < size_; begin += part_bytes) {
    Part part{.begin = begin, .end = std::min(begin + part_bytes, size_)};
    part.done = std::clamp<std::int64_t>(done - begin, 0, part.end - part.begin);
    notes.push_back(part.done);
    parts_.push_back(part);
  }
  if (::ftruncate(descriptor_, done) != 0) return system_failure(path_);
  // Takes the room now, so that a full disk is known before hours of fetching; not every file system can.
  if (::fallocate(descriptor_, 0, 0, size_) != 0 && (errno == ENOSPC || errno == EDQUOT)) return system_failure(path_);
  return write(size_, std::as_bytes(std::span(notes)));
}

std::int64_t PartFile::done() const {
  std::int64_t sum = 0;
  for (const Part& part : parts_) sum += part.done;
  return sum;
}

Result<> PartFile::write(std::int64_t at, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(descriptor_, bytes.data(), bytes.size(), at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_failure(path_);
    at += put;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<> PartFile::append(std::size_t index, std::span<const std::byte> bytes) {
  Part& part = parts_[index];
  OCTET_CHECK(static_cast<std::int64_t>(bytes.size()) <= part.end - part.begin - part.done);
  OCTET_TRY_VOID(write(part.begin + part.done, bytes));
  part.done += static_cast<std::int64_t>(bytes.size());
  return write(note_at(size_, index), std::as_bytes(std::span(&part.done, 1)));
}

Result<> PartFile::finish() {
  if (::ftruncate(descriptor_, size_) != 0 || ::fsync(descriptor_) != 0) return system_failure(path_);
  return {};
}

}  // namespace octet::hub
