#include "octet/base/json.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "octet/base/utf8.h"

namespace octet {
namespace {

constexpr std::size_t kMaxKeyShown = 100;

std::string shown(const std::string& key) { return repair_utf8(key.substr(0, kMaxKeyShown)); }

// Nobody outside may choose keys that collide.
std::uint64_t hash_seed() {
  static const std::uint64_t seed = [] {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }();
  return seed;
}

// Tells whether an object under construction has a key already: by looking through few, by a hash table of many.
class KeyIndex {
 public:
  // object: its members so far. `name` counts as its next member.
  bool insert(const Json::object_t& object, std::string_view name) {
    if (object.size() < kFew) {
      return std::ranges::none_of(object, [&](const auto& member) { return member.first == name; });
    }
    if (object.size() * 2 >= slots_.size()) grow(object);
    return place(object, name, static_cast<std::uint32_t>(object.size()));
  }

 private:
  static constexpr std::size_t kFew = 16;
  static constexpr std::uint32_t kFree = 0xFFFF'FFFF;
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t member = kFree;
  };

  void grow(const Json::object_t& object) {
    slots_.assign(std::max(4 * kFew, slots_.size() * 2), {});
    for (std::uint32_t i = 0; i < object.size(); ++i) place(object, (object.begin() + i)->first, i);
  }

  bool place(const Json::object_t& object, std::string_view name, std::uint32_t member) {
    const std::uint64_t hash = XXH3_64bits_withSeed(name.data(), name.size(), hash_seed());
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    for (; slots_[at].member != kFree; at = (at + 1) & mask) {
      if (slots_[at].hash == tag && (object.begin() + slots_[at].member)->first == name) return false;
    }
    slots_[at] = {tag, member};
    return true;
  }

  std::vector<Slot> slots_;
};

// Builds a value from the parser's events; stops at the first limit that is passed.
class LimitedBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit LimitedBuilder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return stop("binary values are no JSON"); }

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (!count()) return false;
    Level& top = stack_.back();
    if (!limits_.allow_duplicate_keys && !top.keys.insert(top.value.get_ref<const Json::object_t&>(), name)) {
      return stop(fmt::format("duplicate key \"{}\"", shown(name)));
    }
    top.key = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    std::string at;
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().key.empty()) {
      at = fmt::format(", at the value of \"{}\"", shown(stack_.back().key));
    }
    error_at_ = position;
    return stop(fmt::format("not valid JSON at byte {}{}", position, at));
  }

  const std::string& error() const { return error_; }
  std::size_t error_at() const { return error_at_; }
  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json value;
    std::string key;
    KeyIndex keys;
  };

  bool stop(std::string message) {
    error_ = std::move(message);
    return false;
  }

  bool count() {
    if (++values_ > limits_.max_values) return stop(fmt::format("more than {} values", limits_.max_values));
    return true;
  }

  bool add(Json value) {
    if (!count()) return false;
    if (stack_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& top = stack_.back();
    if (top.value.is_array()) {
      top.value.push_back(std::move(value));
    } else if (limits_.allow_duplicate_keys) {
      top.value[top.key] = std::move(value);
    } else {
      // The key is new: append without ordered_json's linear search.
      top.value.get_ref<Json::object_t&>().Json::object_t::Container::emplace_back(std::move(top.key),
                                                                                   std::move(value));
    }
    return true;
  }

  bool open(Json container) {
    if (static_cast<int>(stack_.size()) >= limits_.max_depth) {
      return stop(fmt::format("nested deeper than {} levels", limits_.max_depth));
    }
    stack_.push_back({std::move(container), {}, {}});
    return true;
  }

  bool close() {
    Json done = std::move(stack_.back().value);
    stack_.pop_back();
    return add(std::move(done));
  }

  const JsonLimits& limits_;
  std::vector<Level> stack_;
  Json root_;
  std::string error_;
  std::size_t error_at_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits, std::size_t* error_at) {
  if (error_at != nullptr) *error_at = 0;
  if (text.size() > limits.max_bytes) {
    return fail(ErrorCode::kExhausted, "{} bytes, more than the limit of {}", text.size(), limits.max_bytes);
  }
  // The library skips a byte order mark; JSON between programs must not have one (RFC 8259, section 8.1).
  if (text.starts_with("\xEF\xBB\xBF")) return fail(ErrorCode::kInvalid, "not valid JSON: byte order mark");
  LimitedBuilder builder(limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
    // The parser counts from 1 and counts the end of the text, too.
    if (error_at != nullptr) *error_at = std::min(text.size(), builder.error_at() == 0 ? 0 : builder.error_at() - 1);
    return fail(ErrorCode::kInvalid, "{}", builder.error().empty() ? "not valid JSON" : builder.error());
  }
  return builder.take();
}

std::string dump_json(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace octet
