// The template language against what Jinja2 gives.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "octet/text/chat_template.h"
#include "tests/text/golden.h"

namespace octet::text {
namespace {

constexpr std::int64_t kGoldenNow = 1741944413;  // 2025-03-14 09:26:53

Result<std::string> render(const Json& record) {
  auto parsed = ChatTemplate::parse(record.at("template").get<std::string>());
  if (!parsed) return std::unexpected(parsed.error());
  RenderInput input;
  input.variables = record.at("context");
  input.now = kGoldenNow;
  auto rendered = parsed->render(input);
  if (!rendered) return std::unexpected(rendered.error());
  return rendered->text;
}

void check_snippets(const std::string& file) {
  for (const Json& record : testing::read_jsonl(file)) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    const auto got = render(record);
    if (record.contains("expected")) {
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*got, record["expected"].get<std::string>());
      continue;
    }
    ASSERT_FALSE(got) << *got;
    EXPECT_TRUE(got.error().message.ends_with(": " + record["message"].get<std::string>())) << got.error().message;
    if (record.contains("line")) {
      const std::string line = "line " + std::to_string(record["line"].get<int>()) + ": ";
      EXPECT_NE(got.error().message.find(line), std::string::npos) << got.error().message;
    }
  }
}

TEST(JinjaGolden, Snippets) { check_snippets("jinja/snippets.jsonl"); }
TEST(JinjaGolden, LayoutFilters) { check_snippets("jinja/layout_filters.jsonl"); }

// Largest resident size so far, in KiB.
long peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long size = 0;
    if (word == "VmHWM:" && status >> size) return size;
  }
  return 0;
}

TEST(JinjaGolden, HostileTemplates) {
  const long before = peak_memory();
  for (const Json& record : testing::read_jsonl("jinja/hostile.jsonl")) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    const auto got = render(record);
    const std::string demand = record.at("demand").get<std::string>();
    const Json& reference = record.at("reference");
    if (demand == "error") {
      ASSERT_FALSE(got) << got->substr(0, 200);
      if (reference.contains("line")) {
        const std::string line = "line " + std::to_string(reference["line"].get<int>()) + ": ";
        EXPECT_NE(got.error().message.find(line), std::string::npos) << got.error().message;
      }
    } else if (demand == "error or 1") {
      EXPECT_EQ(got.value_or("1"), "1");
    } else if (demand == "no leak") {
      for (const char* inside : {"class", "function", "__", "0x", "builtin"}) {
        EXPECT_EQ(got.value_or("").find(inside), std::string::npos) << *got;
      }
    } else if (got && reference.contains("expected")) {
      EXPECT_EQ(*got, reference["expected"].get<std::string>());
    }
    if (std::string_view(OCTET_BUILD_TYPE) == "Release") {
      EXPECT_LT(peak_memory() - before, record.at("max_megabytes").get<long>() * 1024);
    }
  }
}

}  // namespace
}  // namespace octet::text
