// Runs the plain-text cases of tests/cases. tests/cases/README.md tells how to write one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "tests/support/test_server.h"

namespace octet::server {
namespace {

using octet::testing::HttpReply;
using octet::testing::TestServer;
using octet::testing::TestServerOptions;
namespace fs = std::filesystem;

struct Case {
  std::string file, name, method, path, body;
  int status = 0;
  std::vector<std::string> headers;                         // sent
  std::vector<std::pair<std::string, std::string>> expect;  // "json", "text", "header", "absent"
  std::map<std::string, std::string> server;                // settings of the file
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.file << ": " << c.name; }
};

// "$(3*ab)" becomes "ababab".
std::string expand(std::string text) {
  std::size_t at = 0;
  while ((at = text.find("$(", at)) != std::string::npos) {
    const std::size_t star = text.find('*', at), end = text.find(')', at);
    if (star == std::string::npos || end == std::string::npos || star > end) break;
    const int count = std::atoi(text.c_str() + at + 2);
    const std::string piece = text.substr(star + 1, end - star - 1);
    std::string out;
    for (int i = 0; i < count; ++i) out += piece;
    text.replace(at, end + 1 - at, out);
    at += out.size();
  }
  return text;
}

void read_line(const std::string& key, const std::string& value, Case& into) {
  if (key == "case") {
    into.name = value;
  } else if (key == "request") {
    const std::size_t space = value.find(' ');
    into.method = value.substr(0, space);
    into.path = expand(value.substr(space + 1));
  } else if (key == "send-header") {
    into.headers.push_back(value);
  } else if (key == "body") {
    into.body = expand(value);
  } else if (key == "status") {
    into.status = std::atoi(value.c_str());
  } else if (key == "json" || key == "text" || key == "header" || key == "absent") {
    into.expect.emplace_back(key, expand(value));
  } else {
    into.server[key] = value;
  }
}

std::vector<Case> read_cases() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(OCTET_TEST_DATA).parent_path() / "cases")) {
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const fs::path& file : files) {
    std::ifstream in(file);
    Case settings, current;
    settings.file = file.stem().string();
    std::string line;
    bool in_case = false;
    while (std::getline(in, line)) {
      const std::size_t colon = line.find(':');
      if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
      const std::string key = line.substr(0, colon);
      const std::size_t start = line.find_first_not_of(' ', colon + 1);
      const std::string value = start == std::string::npos ? "" : line.substr(start);
      if (key == "case") {
        if (in_case) cases.push_back(current);
        current = settings;
        in_case = true;
      }
      read_line(key, value, in_case ? current : settings);
    }
    if (in_case) cases.push_back(current);
  }
  return cases;
}

// Every member of `part` stands in `whole` with the same value; lists are compared element by element.
bool contains(const Json& whole, const Json& part) {
  if (part.is_object()) {
    if (!whole.is_object()) return false;
    for (const auto& [key, value] : part.items()) {
      if (!whole.contains(key) || !contains(whole[key], value)) return false;
    }
    return true;
  }
  if (part.is_array()) {
    if (!whole.is_array() || whole.size() != part.size()) return false;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!contains(whole[i], part[i])) return false;
    }
    return true;
  }
  return whole == part;
}

TestServerOptions server_options(const std::map<std::string, std::string>& settings) {
  TestServerOptions options;
  for (const auto& [key, value] : settings) {
    if (key == "script") {
      options.script = value;
    } else if (key == "ends") {
      options.ends = value == "yes";
    } else if (key == "context") {
      options.max_model_len = std::atoi(value.c_str());
    } else if (key == "loading") {
      options.load = value != "yes";
    } else if (key == "tokenizer") {
      options.tokenizer = options.chat_template = value == "yes";
    } else if (key == "template") {
      options.chat_templates["default"] = value;
    } else if (key == "template-tools") {
      options.chat_templates["tool_use"] = value;
    } else if (key == "trust-template") {
      options.api.templates.trust_request = value == "yes";
    } else if (key == "policy") {
      options.policy =
          value == "priority" ? engine::SchedulerConfig::Policy::kPriority : engine::SchedulerConfig::Policy::kFcfs;
    } else {
      ADD_FAILURE() << "no such key in a case file: " << key;
    }
  }
  return options;
}

// Every error has the one envelope, whatever went wrong; that of Anthropic's routes is another.
void expect_envelope(const Case& c, const HttpReply& reply) {
  if (reply.status < 400 || c.method == "HEAD" || c.path.starts_with("/v1/messages")) return;
  EXPECT_EQ(reply.header("content-type"), "application/json");
  const Json json = reply.json();
  ASSERT_TRUE(json.is_object() && json.contains("error")) << reply.body;
  const Json& error = json["error"];
  EXPECT_TRUE(error["message"].is_string() && error["message"] != "") << reply.body;
  EXPECT_TRUE(error["type"].is_string()) << reply.body;
  EXPECT_TRUE(error.contains("param") && (error["param"].is_null() || error["param"].is_string())) << reply.body;
  EXPECT_EQ(error["code"], reply.status);
}

class Cases : public ::testing::TestWithParam<Case> {};

TEST_P(Cases, Answers) {
  const Case& c = GetParam();
  TestServer server(server_options(c.server));
  octet::testing::HttpClient client(server.port());
  std::string headers;
  for (const std::string& header : c.headers) headers += header + "\r\n";
  if (c.method == "POST") {
    client.post(c.path, c.body, headers);
  } else {
    client.get(c.path, c.method);
  }
  const HttpReply reply = client.read();
  EXPECT_TRUE(reply.complete);
  EXPECT_EQ(reply.status, c.status) << reply.body;
  expect_envelope(c, reply);
  const Json json = reply.json();
  for (const auto& [kind, value] : c.expect) {
    if (kind == "json") {
      EXPECT_TRUE(contains(json, Json::parse(value))) << "expected " << value << "\ngot " << reply.body;
    } else if (kind == "text") {
      EXPECT_NE(reply.body.find(value), std::string::npos) << "expected " << value << "\ngot " << reply.body;
    } else if (kind == "absent") {
      EXPECT_EQ(reply.body.find(value), std::string::npos) << "not expected: " << value << "\ngot " << reply.body;
    } else {
      const std::size_t colon = value.find(": ");
      EXPECT_EQ(reply.header(value.substr(0, colon)), value.substr(colon + 2));
    }
  }
  // The server is as alive as before.
  EXPECT_EQ(server.get("/health").status, 200);
  if (server.service().model()) {
    EXPECT_TRUE(server.comes_to_rest());
    EXPECT_EQ(server.post("/v1/completions", R"({"prompt": [1, 2], "max_tokens": 2})").status, 200);
  }
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = fmt::format("{}_{}_{}", info.param.file, info.index, info.param.name);
  for (char& ch : name) {
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Cases, ::testing::ValuesIn(read_cases()), case_name);

}  // namespace
}  // namespace octet::server
