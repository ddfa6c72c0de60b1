#include "octet/bench/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace octet::bench {
namespace {

std::unexpected<Error> system_failure(const std::filesystem::path& path, std::string_view what) {
  const int number = errno;
  return fail(ErrorCode::kIo, "{}: {}: {}", path.string(), what, std::strerror(number));
}

Result<> make_folder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  if (folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(ErrorCode::kIo, "{}: cannot make the folder: {}", folder.string(), error.message());
  return {};
}

Result<> write_all(int file, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_failure(path, "cannot write");
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

// Opens with these flags, writes and closes.
Result<> write_to(const std::filesystem::path& path, int flags, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (file < 0) return system_failure(path, "cannot open for writing");
  auto written = write_all(file, text, path);
  if (::close(file) != 0 && written) return system_failure(path, "cannot write");
  return written;
}

}  // namespace

Result<> write_whole(const std::filesystem::path& path, std::string_view text) {
  OCTET_TRY_VOID(make_folder(path));
  std::error_code error;
  // A pipe or a device is written into, never replaced.
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return write_to(path, 0, text);
  const std::filesystem::path part = path.string() + ".part" + std::to_string(::getpid());
  auto written = write_to(part, O_TRUNC, text);
  if (written && ::rename(part.c_str(), path.c_str()) != 0) written = system_failure(path, "cannot put into place");
  if (!written) ::unlink(part.c_str());
  return written;
}

Result<> append_text(const std::filesystem::path& path, std::string_view text) {
  OCTET_TRY_VOID(make_folder(path));
  return write_to(path, O_APPEND, text);
}

}  // namespace octet::bench
