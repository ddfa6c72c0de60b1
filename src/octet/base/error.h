// Expected failures: Error, Result<T> and the one macro that passes them on.
#pragma once
#include <fmt/format.h>

#include <expected>
#include <string>
#include <utility>

namespace octet {

enum class ErrorCode {
  kInvalid,      // the input is wrong: a flag, a file, a request
  kNotFound,     // what was named does not exist
  kUnsupported,  // well formed, but not built
  kExhausted,    // no room: memory, queue, limit
  kIo,           // the system refused or failed
  kCancelled,    // asked to stop
};

// One message for a person: it names the file, field or flag and says what was expected.
struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  std::string message;
};

template <typename T = void>
using Result = std::expected<T, Error>;

// Makes the failure value of any Result: return fail(ErrorCode::kInvalid, "{}: ...", path).
template <typename... Args>
std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

// Puts "context: " before an error's message.
inline std::unexpected<Error> within(std::string_view context, Error error) {
  return std::unexpected(Error{error.code, fmt::format("{}: {}", context, error.message)});
}

}  // namespace octet

#define OCTET_CONCAT_INNER(a, b) a##b
#define OCTET_CONCAT(a, b) OCTET_CONCAT_INNER(a, b)

// OCTET_TRY(auto x, call()): x takes the value, or the enclosing function returns the error.
#define OCTET_TRY(declaration, ...)                                                \
  auto OCTET_CONCAT(octet_try_, __LINE__) = (__VA_ARGS__);                         \
  if (!OCTET_CONCAT(octet_try_, __LINE__)) [[unlikely]]                            \
    return std::unexpected(std::move(OCTET_CONCAT(octet_try_, __LINE__)).error()); \
  declaration = *std::move(OCTET_CONCAT(octet_try_, __LINE__))

// The same for a Result<void>.
#define OCTET_TRY_VOID(...)                                                    \
  do {                                                                         \
    if (auto octet_try_result = (__VA_ARGS__); !octet_try_result) [[unlikely]] \
      return std::unexpected(std::move(octet_try_result).error());             \
  } while (false)
