// The configuration file of a flag table: a YAML map from long names (without dashes) to values.
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "octet/base/file.h"
#include "octet/base/flags.h"
#include "octet/base/json.h"

namespace octet {
namespace {

constexpr std::size_t kMaxConfigBytes = 1 << 20;

// A nested value of a JSON flag. Plain scalars that are JSON by themselves (3, true, null) stay so; all others are
// strings.
std::string json_text(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Sequence: {
      std::vector<std::string> items;
      for (const auto& item : node) items.push_back(json_text(item));
      return fmt::format("[{}]", fmt::join(items, ", "));
    }
    case YAML::NodeType::Map: {
      std::vector<std::string> items;
      for (const auto& item : node)
        items.push_back(fmt::format("{}: {}", Json(item.first.as<std::string>()).dump(), json_text(item.second)));
      return fmt::format("{{{}}}", fmt::join(items, ", "));
    }
    case YAML::NodeType::Scalar: {
      const std::string& text = node.Scalar();
      if (node.Tag() == "?" && Json::accept(text)) return text;
      return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
    }
    default:
      return "null";
  }
}

std::vector<std::string> values_of(const YAML::Node& node, bool list) {
  if (node.IsScalar()) return {node.Scalar()};
  if (!list || !node.IsSequence()) return {json_text(node)};
  std::vector<std::string> values;
  for (const auto& item : node) values.push_back(item.IsScalar() ? item.Scalar() : json_text(item));
  return values;
}

Result<std::vector<std::pair<std::string, YAML::Node>>> load(const std::string& text) {
  std::vector<std::pair<std::string, YAML::Node>> entries;
  try {
    YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return fail(ErrorCode::kInvalid, "expected a map of flags, as in \"max-model-len: 4096\"");
    for (const auto& entry : root) entries.emplace_back(entry.first.as<std::string>(), entry.second);
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::kInvalid, "{}", error.what());
  }
  return entries;
}

}  // namespace

Result<> FlagTable::read_config(const std::string& path) {
  auto text = read_file(path, kMaxConfigBytes);
  if (!text) return within("--config", std::move(text).error());
  auto entries = load(*text);
  if (!entries) return within(path, std::move(entries).error());
  for (const auto& [key, node] : *entries) {
    std::string name = "--" + key;
    std::ranges::replace(name, '_', '-');
    Row* row = find(name);
    if (!row) return within(path, Error{ErrorCode::kInvalid, unknown(name)});
    if (row->given || node.IsNull()) continue;
    auto* shape = std::get_if<FlagShape>(&row->flag.target);
    bool list =
        shape ? *shape == FlagShape::kList : std::holds_alternative<std::vector<std::string>*>(row->flag.target);
    auto values = values_of(node, list);
    if (values.empty()) continue;
    if (auto result = store(*row, values); !result) return within(path, std::move(result).error());
  }
  return {};
}

}  // namespace octet
