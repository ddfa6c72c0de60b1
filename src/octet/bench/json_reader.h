// Reads the members of a JSON object into variables; the first thing that is wrong is kept as an error that names its
// place, as in "targets[0].points: expected a list".
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "octet/base/error.h"
#include "octet/base/json.h"

namespace octet::bench {

class JsonReader {
 public:
  // place: what the value is called; empty at the top. error is shared by all readers of one text.
  JsonReader(const Json& json, std::string place, std::optional<Error>& error)
      : json_(json), place_(std::move(place)), error_(error) {
    if (!json_.is_object()) note(place_, "an object");
  }

  // A member that must be there, of the type of out.
  template <typename T>
  void read(std::string_view key, T& out) {
    if (const Json* member = find(key)) take(*member, place_of(key), out);
  }

  // Calls each(reader, index) for the objects of a list.
  template <typename Each>
  void objects(std::string_view key, Each each) {
    const Json* list = find(key);
    if (list == nullptr) return;
    if (!list->is_array()) return note(place_of(key), "a list");
    for (std::size_t i = 0; i < list->size() && !error_; ++i) {
      JsonReader reader((*list)[i], fmt::format("{}[{}]", place_of(key), i), error_);
      if (!error_) each(reader);
    }
  }

  template <typename Each>
  void object(std::string_view key, Each each) {
    const Json* member = find(key);
    if (member == nullptr) return;
    JsonReader reader(*member, place_of(key), error_);
    if (!error_) each(reader);
  }

  // The value of a member, for forms of its own; nullptr where it is missing (which is then an error).
  const Json* find(std::string_view key) {
    if (error_) return nullptr;
    const auto found = json_.find(key);
    if (found != json_.end()) return &*found;
    fail_at(key, "missing");
    return nullptr;
  }

  bool has(std::string_view key) const { return json_.is_object() && json_.contains(key); }
  bool failed() const { return error_.has_value(); }
  void fail_at(std::string_view key, std::string_view problem) {
    if (!error_) error_ = Error{ErrorCode::kInvalid, fmt::format("{}: {}", place_of(key), problem)};
  }

  template <typename T>
  void take(const Json& value, const std::string& place, T& out) {
    if constexpr (std::is_same_v<T, std::optional<double>>) {
      if (value.is_null()) {
        out.reset();
      } else {
        take(value, place, out.emplace());
      }
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) return note(place, "true or false");
      out = value.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      take_integer(value, place, out);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!value.is_number()) return note(place, "a number");
      out = value.get<T>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.is_string()) return note(place, "text");
      out = value.get<std::string>();
    } else {
      if (!value.is_array()) return note(place, "a list");
      out.resize(value.size());
      for (std::size_t i = 0; i < out.size() && !error_; ++i) take(value[i], fmt::format("{}[{}]", place, i), out[i]);
    }
  }

 private:
  std::string place_of(std::string_view key) const {
    return place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key);
  }

  void note(const std::string& place, std::string_view expected) {
    if (error_) return;
    error_ = Error{ErrorCode::kInvalid, place.empty() ? fmt::format("expected {}", expected)
                                                      : fmt::format("{}: expected {}", place, expected)};
  }

  template <typename T>
  void take_integer(const Json& value, const std::string& place, T& out) {
    if (!value.is_number_integer()) return note(place, "a whole number");
    const bool huge = value.is_number_unsigned() &&
                      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t number = huge ? 0 : value.get<std::int64_t>();
    if (huge || number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      return note(place,
                  fmt::format("a number from {} to {}", std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    }
    out = static_cast<T>(number);
  }

  const Json& json_;
  std::string place_;
  std::optional<Error>& error_;
};

}  // namespace octet::bench
