#include "octet/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace octet {
namespace {

struct FileDescriptor {
  int fd = -1;
  ~FileDescriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string system_error(int number) { return std::strerror(number); }

// Opens a regular file; O_NONBLOCK so that a FIFO without a writer does not hang.
Result<std::size_t> open_regular(const std::filesystem::path& path, FileDescriptor& out) {
  out.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (out.fd < 0) {
    return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "{}: {}", path.string(), system_error(errno));
  }
  struct stat status{};
  if (::fstat(out.fd, &status) != 0) return fail(ErrorCode::kIo, "{}: {}", path.string(), system_error(errno));
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kInvalid, "{}: not a regular file", path.string());
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  FileDescriptor file;
  OCTET_TRY(const std::size_t size, open_regular(path, file));
  MappedFile mapped;
  mapped.path_ = path;
  mapped.size_ = size;
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (address == MAP_FAILED) return fail(ErrorCode::kIo, "{}: {}", path.string(), system_error(errno));
    mapped.data_ = static_cast<const std::byte*>(address);
  }
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<> MappedFile::read(std::span<const std::byte> range) const {
#ifdef MADV_POPULATE_READ
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(range.data()) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(range.data() + range.size());
  if (range.empty()) return {};
  int status = 0;
  do {
    status = ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
  } while (status != 0 && (errno == EINTR || errno == EAGAIN));
  // EINVAL: a kernel before 5.14. The pages come when they are touched.
  if (status != 0 && errno != EINVAL) {
    return fail(ErrorCode::kIo, "{}: reading {} bytes at byte {} failed: {}", path_.string(), range.size(),
                range.data() - data_,
                errno == EFAULT ? "an I/O error, or the file is shorter now" : system_error(errno));
  }
#endif
  return {};
}

void MappedFile::release(std::span<const std::byte> range) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(range.data()) + page - 1) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(range.data() + range.size()) / page * page;
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void MappedFile::prefetch(std::span<const std::byte> range) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(range.data()) / page * page;
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(range.data() + range.size());
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  FileDescriptor file;
  OCTET_TRY(const std::size_t size, open_regular(path, file));
  if (size > max_bytes) {
    return fail(ErrorCode::kExhausted, "{}: {} bytes, more than the limit of {}", path.string(), size, max_bytes);
  }
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.fd, text.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::kIo, "{}: {}", path.string(), system_error(errno));
    if (got == 0) return fail(ErrorCode::kIo, "{}: ended at byte {} of {}", path.string(), done, size);
    done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace octet
