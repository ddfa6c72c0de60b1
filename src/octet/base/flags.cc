#include "octet/base/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "octet/base/check.h"
#include "octet/base/edit_distance.h"
#include "octet/base/json.h"
#include "octet/base/log.h"
#include "octet/base/parse.h"

namespace octet {
namespace {

constexpr int kMaxListValues = 1 << 20;

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    auto end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_switch(const FlagTarget& target) {
  if (auto* shape = std::get_if<FlagShape>(&target)) return *shape == FlagShape::kSwitch;
  return std::holds_alternative<bool*>(target) || std::holds_alternative<std::optional<bool>*>(target);
}

bool is_list(const FlagTarget& target) {
  if (auto* shape = std::get_if<FlagShape>(&target)) return *shape == FlagShape::kList;
  return std::holds_alternative<std::vector<std::string>*>(target);
}

template <typename T>
std::string show(const T& value) {
  return fmt::format("{}", value);
}
template <typename T>
std::string show(const std::optional<T>& value) {
  return value ? show(*value) : std::string();
}
std::string show(const std::vector<std::string>& values) { return fmt::format("{}", fmt::join(values, " ")); }

std::string default_of(const FlagTarget& target) {
  return std::visit(Overloaded{[](FlagShape) { return std::string(); }, [](auto* value) { return show(*value); }},
                    target);
}

bool is_number(std::string_view text) { return parse_number<double>(text).has_value(); }

Result<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  return fail(ErrorCode::kInvalid, "expected true or false, got '{}'", text);
}

Result<double> parse_double(std::string_view text) {
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value)) return fail(ErrorCode::kInvalid, "expected a number, got '{}'", text);
  return *value;
}

Result<> check_range(const Flag& flag, double value) {
  if ((!flag.min || value >= *flag.min) && (!flag.max || value <= *flag.max)) return {};
  if (flag.min && flag.max)
    return fail(ErrorCode::kInvalid, "must be from {} to {}, got {}", *flag.min, *flag.max, value);
  return flag.min ? fail(ErrorCode::kInvalid, "must be at least {}, got {}", *flag.min, value)
                  : fail(ErrorCode::kInvalid, "must be at most {}, got {}", *flag.max, value);
}

Result<> check_choice(const Flag& flag, std::string_view value) {
  if (flag.choices.empty()) return {};
  auto choices = split(flag.choices, ',');
  if (std::ranges::find(choices, value) != choices.end()) return {};
  return fail(ErrorCode::kInvalid, "must be one of {}, got '{}'", fmt::join(choices, ", "), value);
}

Result<> assign(const Flag&, const std::vector<std::string>& values, bool& target) {
  OCTET_TRY(target, parse_bool(values.back()));
  return {};
}

Result<> assign(const Flag& flag, const std::vector<std::string>& values, std::int64_t& target) {
  OCTET_TRY(auto value, parse_size(values.back()));
  OCTET_TRY_VOID(check_range(flag, static_cast<double>(value)));
  target = value;
  return {};
}

Result<> assign(const Flag& flag, const std::vector<std::string>& values, double& target) {
  OCTET_TRY(auto value, parse_double(values.back()));
  OCTET_TRY_VOID(check_range(flag, value));
  target = value;
  return {};
}

Result<> assign(const Flag& flag, const std::vector<std::string>& values, std::string& target) {
  OCTET_TRY_VOID(check_choice(flag, values.back()));
  target = values.back();
  return {};
}

Result<> assign(const Flag& flag, const std::vector<std::string>& values, std::vector<std::string>& target) {
  for (const auto& value : values) OCTET_TRY_VOID(check_choice(flag, value));
  target = values;
  return {};
}

template <typename T>
Result<> assign(const Flag& flag, const std::vector<std::string>& values, std::optional<T>& target) {
  T value{};
  OCTET_TRY_VOID(assign(flag, values, value));
  target = std::move(value);
  return {};
}

// Members of `more` over those of `json`, objects into objects.
void merge(Json& json, const Json& more) {
  for (const auto& [key, value] : more.items()) {
    if (value.is_object() && json.contains(key) && json[key].is_object()) {
      merge(json[key], value);
    } else {
      json[key] = value;
    }
  }
}

Result<std::string> merged(const std::vector<std::string>& values) {
  if (values.size() == 1) return values.front();
  Json all = Json::object();
  for (const std::string& value : values) {
    OCTET_TRY(const Json json, parse_json(value));
    if (!json.is_object()) return fail(ErrorCode::kInvalid, "expected a JSON object, got {}", value);
    merge(all, json);
  }
  return dump_json(all);
}

// Is this value what vLLM does without the flag? "0.0" equals "0", and a switch that is off by default may be switched
// off.
bool equals_default(const Flag& flag, const std::vector<std::string>& values) {
  if (is_switch(flag.target)) {
    auto value = parse_bool(values.back());
    return value && *value == (flag.fallback == "True");
  }
  auto text = fmt::format("{}", fmt::join(values, " "));
  if (text == flag.fallback || (flag.fallback.empty() && text == "None")) return true;
  auto number = parse_double(text), other = parse_double(flag.fallback);
  return number && other && *number == *other;
}

}  // namespace

FlagTable::FlagTable(std::string command, std::string summary, std::span<const Flag> flags)
    : command_(std::move(command)), summary_(std::move(summary)) {
  add(flags);
}

void FlagTable::add(std::span<const Flag> flags) {
  for (const Flag& flag : flags) {
    Row row{.flag = flag, .names = split(flag.names, ' '), .default_text = default_of(flag.target)};
    OCTET_CHECK(!row.names.empty());
    for (const auto& name : row.names) OCTET_CHECK(!find(name));
    rows_.push_back(std::move(row));
  }
}

void FlagTable::add_missing(std::span<const Flag> flags) {
  for (const Flag& flag : flags)
    if (!find(split(flag.names, ' ').front())) add({&flag, 1});
}

FlagTable::Row* FlagTable::find(std::string_view name) {
  for (Row& row : rows_)
    if (std::ranges::find(row.names, name) != row.names.end()) return &row;
  return nullptr;
}

bool FlagTable::given(std::string_view long_name) const {
  return std::ranges::any_of(rows_, [&](const Row& row) { return row.given && row.names.front() == long_name; });
}

std::string FlagTable::unknown(std::string_view name) const {
  std::string_view nearest;
  std::size_t best = name.size() / 2 + 1;
  for (const Row& row : rows_) {
    for (const auto& known : row.names) {
      if (!known.starts_with("--")) continue;
      auto distance = known.starts_with(name) ? 0 : edit_distance(name, known);
      if (distance < best) best = distance, nearest = known;
    }
  }
  if (nearest.empty()) return fmt::format("{}: no such flag", name);
  return fmt::format("{}: no such flag; the nearest is {}", name, nearest);
}

// --flag.key.key=value, or the value as the next argument: appends the flag with an object of that member. True: the
// value was the next argument. Without effect where the first argument has another form.
Result<bool> FlagTable::spell_member(std::span<const std::string> arguments, std::vector<std::string>& words) {
  const std::string& argument = arguments.front();
  const std::size_t equal = std::min(argument.find('='), argument.size());
  const std::size_t dot = argument.find('.');
  if (!argument.starts_with("--") || dot >= equal) return false;
  std::string name = argument.substr(0, dot);
  std::ranges::replace(name, '_', '-');
  Row* row = find(name);
  if (row == nullptr || !row->flag.json) return false;
  const bool next = equal == argument.size();
  if (next && arguments.size() < 2) return fail(ErrorCode::kInvalid, "{}: a value is missing", argument);
  const std::string text = next ? arguments[1] : argument.substr(equal + 1);
  auto parsed = parse_json(text);
  Json value = parsed ? *std::move(parsed) : Json(text);
  const std::vector<std::string> keys = split(std::string_view(argument).substr(dot, equal - dot), '.');
  if (keys.empty()) return fail(ErrorCode::kInvalid, "{}: a key is missing", argument);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) value = Json{{*key, std::move(value)}};
  row->mentioned = true;
  words.push_back(row->names.front());
  words.push_back(dump_json(value));
  return next;
}

// Appends one argument as the parser below knows it: `-` for `_`, the long name for any other, --name=value as two
// words.
Result<> FlagTable::spell(std::string_view argument, std::vector<std::string>& words) {
  auto equal = std::min(argument.find('='), argument.size());
  auto push = [&](Row& row, const std::string& name, bool one_word) {
    row.mentioned = true;
    words.push_back(one_word ? name + std::string(argument.substr(equal)) : name);
    if (!one_word && equal < argument.size()) words.emplace_back(argument.substr(equal + 1));
    return Result<>();
  };
  if (argument.size() < 2 || argument[0] != '-' || is_number(argument)) {
    words.emplace_back(argument);
    return {};
  }
  std::string name(argument.substr(0, equal));
  std::ranges::replace(name, '_', '-');
  if (name == "-h" || name == "--help" || name == "--help-all") {
    wants_help_ = true;
    const auto word = argument.substr(std::min(equal + 1, argument.size()));
    wants_all_ = wants_all_ || name == "--help-all" || word == "all";
    if (word != "all") wanted_word_ = word;
    return {};
  }
  if (Row* row = find(name)) return push(*row, row->names.front(), is_switch(row->flag.target));
  if (name.starts_with("--no-")) {
    Row* row = find("--" + name.substr(5));
    if (row && is_switch(row->flag.target)) return push(*row, name, true);
  }
  // vLLM writes one key of a JSON flag as --flag.key=value.
  if (auto dot = name.find('.'); dot != std::string::npos) {
    Row* row = find(name.substr(0, dot));
    if (row && row->flag.kind == FlagClass::kAccepted) return push(*row, row->names.front(), false);
    if (row)
      return fail(ErrorCode::kUnsupported, "{}: give the keys of {} as one JSON value", name, row->names.front());
  }
  return fail(ErrorCode::kInvalid, "{}", unknown(name));
}

Result<> FlagTable::store(Row& row, const std::vector<std::string>& values) {
  const std::string& name = row.names.front();
  row.given = true;
  switch (row.flag.kind) {
    case FlagClass::kAccepted:
      notes_.push_back(fmt::format("{} has no effect here: {}", name, row.flag.help));
      return {};
    case FlagClass::kLater:
      if (equals_default(row.flag, values)) return {};
      return fail(ErrorCode::kUnsupported, "{}: not built into this version: {}", name, row.flag.help);
    case FlagClass::kBuilt:
      break;
  }
  std::vector<std::string> given = values;
  if (row.flag.json) {
    auto text = merged(values);
    if (!text) return within(name, std::move(text).error());
    given = {*std::move(text)};
  }
  auto result = std::visit(Overloaded{[](FlagShape) -> Result<> { return {}; },
                                      [&](auto* target) { return assign(row.flag, given, *target); }},
                           row.flag.target);
  if (!result) return within(name, std::move(result).error());
  return {};
}

Result<> FlagTable::parse(std::span<const std::string> arguments) {
  std::vector<std::string> words;
  bool literal = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    literal = literal || argument == "--";
    if (literal) {
      words.push_back(argument);
      continue;
    }
    const std::size_t before = words.size();
    OCTET_TRY(const bool took_next, spell_member(arguments.subspan(i), words));
    if (took_next) ++i;
    if (words.size() == before) OCTET_TRY_VOID(spell(argument, words));
    if (wants_help_) return {};
  }
  // CLI11 divides the words among the flags; conversion is ours, since it would take [..] and {} in values apart.
  CLI::App app;
  app.set_help_flag();
  std::vector<std::pair<Row*, CLI::Option*>> options;
  for (Row& row : rows_) {
    const std::string& name = row.names.front();
    bool positional = !name.starts_with("-");
    if (!row.mentioned && !positional) continue;
    if (is_switch(row.flag.target)) {
      options.emplace_back(&row, app.add_flag(fmt::format("{},!--no-{}", name, name.substr(2))));
    } else {
      auto* option =
          app.add_option(name)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      option->expected(1, is_list(row.flag.target) ? kMaxListValues : 1)->required(row.flag.required);
      options.emplace_back(&row, option);
    }
  }
  try {
    std::ranges::reverse(words);
    app.parse(words);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view text = error.what();
    return fail(ErrorCode::kInvalid, "{}: a value is missing", text.substr(0, text.find(':')));
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::kInvalid, "{}", error.what());
  }
  for (auto [row, option] : options)
    if (option->count() > 0) OCTET_TRY_VOID(store(*row, option->results()));
  Row* config = find("--config");
  if (config && config->given) OCTET_TRY_VOID(read_config(std::get<std::string*>(config->flag.target)[0]));
  return {};
}

std::optional<int> parse_command(FlagTable& table, int argc, char** argv, const std::function<Result<>()>& start_log) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (auto result = table.parse(arguments); !result) {
    fmt::print(stderr, "{}: {}\nTry {} --help\n", table.command(), result.error().message, table.command());
    return 2;
  }
  if (table.wants_help()) {
    fmt::print("{}", table.help());
    return 0;
  }
  if (start_log) {
    if (auto started = start_log(); !started) {
      fmt::print(stderr, "{}: {}\n", table.command(), started.error().message);
      return 2;
    }
  }
  for (const auto& note : table.notes()) log_info("{}", note);
  return std::nullopt;
}

Result<std::int64_t> parse_size(std::string_view text) {
  auto wrong = [&] {
    return fail(ErrorCode::kInvalid, "expected a whole number such as 512, 2k or 25.6k, got '{}'", text);
  };
  std::string_view digits = text;
  double factor = 1;
  if (!text.empty()) {
    constexpr std::string_view kDecimal = "kmgt", kBinary = "KMGT";
    if (auto at = kDecimal.find(text.back()); at != kDecimal.npos) factor = std::pow(1000, at + 1);
    if (auto at = kBinary.find(text.back()); at != kBinary.npos) factor = std::pow(1024, at + 1);
    if (factor != 1) digits.remove_suffix(1);
  }
  std::int64_t whole = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (error == std::errc() && end == digits.data() + digits.size()) {
    if (__builtin_mul_overflow(whole, static_cast<std::int64_t>(factor), &whole)) return wrong();
    return whole;
  }
  auto value = parse_double(digits);
  if (!value || factor == 1) return wrong();
  double product = *value * factor, rounded = std::round(product);
  if (std::abs(product - rounded) > 1e-9 * std::abs(product) || std::abs(rounded) >= 9e18) return wrong();
  return static_cast<std::int64_t>(rounded);
}

}  // namespace octet
