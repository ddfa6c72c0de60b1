// Typed, bounded access to the fields of one JSON object. Errors name the file and the key. null counts as absent.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/json.h"

namespace octet::formats {

// Reads a JSON file of at most 64 MiB whose value is an object.
Result<Json> read_json_object(const std::string& path);

enum class Sign { kPositive, kNotNegative };

class JsonFields {
 public:
  // where: the file, and the key path of the object inside it; both outlive this.
  JsonFields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const Json* find(std::string_view key) const;
  std::vector<std::string> keys() const;  // sorted, null ones too

  Result<std::optional<std::int64_t>> integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  Result<std::int64_t> required_integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  // Finite, and of this sign.
  Result<std::optional<double>> number(std::string_view key, Sign sign) const;
  Result<double> required_number(std::string_view key, Sign sign) const;
  Result<bool> boolean(std::string_view key, bool otherwise) const;
  Result<std::optional<std::string>> string(std::string_view key) const;
  // One integer or a list of them.
  Result<std::vector<std::int64_t>> integers(std::string_view key, std::int64_t min, std::int64_t max) const;
  // A list of strings; empty where there is none.
  Result<std::vector<std::string>> strings(std::string_view key) const;
  // The object under the key, or nullopt.
  Result<std::optional<JsonFields>> object(std::string_view key) const;

  // An error about a key: "where: key ...".
  template <typename... Args>
  std::unexpected<Error> error(std::string_view key, fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kInvalid, "{}: {} {}", where_, key, fmt::format(format, std::forward<Args>(args)...));
  }
  std::unexpected<Error> unsupported(std::string_view key) const;

 private:
  const Json& object_;
  std::string where_;
};

}  // namespace octet::formats
