#include "octet/base/json.h"

#include <algorithm>
#include <set>
#include <vector>

#include "octet/base/utf8.h"

namespace octet {
namespace {

constexpr std::size_t kMaxKeyShown = 100;

std::string shown(const std::string& key) { return repair_utf8(key.substr(0, kMaxKeyShown)); }

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
    if (!limits_.allow_duplicate_keys && !top.keys.insert(name).second) {
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
    std::set<std::string, std::less<>> keys;
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
