#include "tests/support/prometheus_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace octet::testing {
namespace {

// name{label="value",…} number
bool parse_sample(std::string_view line, MetricSample& sample) {
  std::size_t at = line.find_first_of("{ ");
  if (at == std::string_view::npos) return false;
  sample.name = line.substr(0, at);
  if (line[at] == '{') {
    while (line[at] != '}') {
      const std::size_t equals = line.find("=\"", ++at);
      if (equals == std::string_view::npos) return false;
      std::string value;
      std::size_t i = equals + 2;
      for (; i < line.size() && line[i] != '"'; ++i) {
        if (line[i] == '\\') ++i;
        value += line[i];
      }
      sample.labels[std::string(line.substr(at, equals - at))] = value;
      at = i + 1;
      if (at >= line.size() || (line[at] != ',' && line[at] != '}')) return false;
    }
    ++at;
  }
  char* end = nullptr;
  const std::string number(line.substr(at));
  sample.value = std::strtod(number.c_str(), &end);
  return !number.empty() && number[0] == ' ' && *end == '\0';
}

}  // namespace

MetricText parse_metrics(std::string_view text) {
  MetricText parsed;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# ")) {
      std::istringstream words(line.substr(2));
      std::string kind, name, rest;
      words >> kind >> name;
      std::getline(words >> std::ws, rest);
      (kind == "TYPE" ? parsed.types : parsed.helps)[name] = rest;
      continue;
    }
    MetricSample sample;
    EXPECT_TRUE(parse_sample(line, sample)) << line;
    parsed.samples.push_back(std::move(sample));
  }
  return parsed;
}

double MetricText::value(std::string_view name, const std::map<std::string, std::string>& labels) const {
  double sum = std::numeric_limits<double>::quiet_NaN();
  for (const MetricSample& sample : samples) {
    const bool fits = sample.name == name && std::ranges::all_of(labels, [&](const auto& label) {
                        const auto found = sample.labels.find(label.first);
                        return found != sample.labels.end() && found->second == label.second;
                      });
    if (fits) sum = std::isnan(sum) ? sample.value : sum + sample.value;
  }
  return sum;
}

std::vector<std::string> MetricText::bounds(std::string_view family) const {
  std::vector<std::string> found;
  const std::string name = std::string(family) + "_bucket";
  for (const MetricSample& sample : samples) {
    if (sample.name == name) found.push_back(sample.labels.at("le"));
  }
  return found;
}

}  // namespace octet::testing
