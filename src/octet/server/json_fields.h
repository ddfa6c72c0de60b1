// Reads the fields of a JSON object strictly: a value of another type is an error that names the field, never
// converted. null means absent. Unknown fields are left alone.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/json.h"
#include "octet/server/api_error.h"

namespace octet::server {

// The first error sticks; getters then return nothing, so a parser checks once at its end.
class JsonFields {
 public:
  // prefix: path of the object inside the body, with a dot at its end ("messages.0."), or empty. The object must
  // outlive this.
  explicit JsonFields(const Json& object, std::string prefix = {});

  const Json* find(std::string_view name) const;  // null: absent or null
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name);  // 3 and 3.0; not 1.5, "3" or true
  std::optional<double> number(std::string_view name);
  std::optional<std::string> string(std::string_view name);
  const Json* object(std::string_view name);
  const Json* array(std::string_view name);
  // A string, or a list of strings.
  std::vector<std::string> strings(std::string_view name);
  std::vector<std::int64_t> integers(std::string_view name);

  void fail(ApiError error);
  void fail_form(std::string_view name, std::string_view expected);
  void fail_value(std::optional<std::string> param, std::string message);

  bool ok() const { return !error_; }
  const ApiError& error() const { return *error_; }

 private:
  const Json& object_;
  std::string prefix_;
  std::optional<ApiError> error_;
};

// The whole number in a value, where it is one.
std::optional<std::int64_t> whole_number(const Json& value);

// `value` as a message shows it: short JSON.
std::string shown(const Json& value);

}  // namespace octet::server
