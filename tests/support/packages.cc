#include "tests/support/packages.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <sstream>

#include "octet/base/environment.h"
#include "octet/base/json.h"
#include "octet/formats/gguf.h"

namespace octet::testing {

const std::vector<PackageRow>& package_rows() {
  static const std::vector<PackageRow> rows = [] {
    std::vector<PackageRow> made;
    std::ifstream file(std::string(OCTET_TEST_DATA) + "/text/packages.tsv");
    std::string line;
    for (std::getline(file, line); std::getline(file, line);) {
      std::array<std::string, 9> columns;
      std::stringstream cells(line);
      for (std::string& column : columns) std::getline(cells, column, '\t');
      made.push_back({columns[0], columns[1], columns[2], columns[5], columns[6]});
    }
    return made;
  }();
  return rows;
}

namespace {

const PackageRow& row_of(const std::string& name) {
  for (const PackageRow& row : package_rows()) {
    if (row.name == name) return row;
  }
  static const PackageRow none;
  ADD_FAILURE() << "packages.tsv has no row " << name;
  return none;
}

std::filesystem::path cached(const PackageRow& row, const std::string& member) {
  const auto models = model_cache_folder();
  EXPECT_TRUE(models);
  if (!models) return {};
  const auto path = models->parent_path() / "test-packages" / row.package / row.version / member;
  EXPECT_TRUE(std::filesystem::exists(path))
      << path << " is not there; run: .venv/bin/python3 tools/fetch_test_data.py";
  return path;
}

}  // namespace

std::filesystem::path package_file(const std::string& row) {
  const PackageRow& found = row_of(row);
  return cached(found, found.path.substr(0, found.path.find('#')));
}

std::filesystem::path package_member(const std::string& package, const std::string& member) {
  for (const PackageRow& row : package_rows()) {
    if (row.package == package) return cached(row, member);
  }
  ADD_FAILURE() << "packages.tsv has no package " << package;
  return {};
}

std::string read_package_file(const std::filesystem::path& path, const std::string& digest) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::stringstream out;
  out << file.rdbuf();
  std::string text = out.str();
  if (!digest.empty()) {
    EXPECT_EQ(sha256_hex(text), digest) << path;
  }
  return text;
}

std::string package_text(const std::string& row) {
  const PackageRow& found = row_of(row);
  const auto path = package_file(row);
  const std::size_t hash = found.path.find('#');
  if (hash == std::string::npos) return read_package_file(path, found.path_sha256);
  const std::string key = found.path.substr(hash + 1);
  std::string text;
  if (path.extension() == ".gguf") {
    const auto file = formats::GgufFile::open(path);
    EXPECT_TRUE(file) << file.error().message;
    if (file) text = file->string(key).value_or("");
  } else {
    const auto json = parse_json(read_package_file(path), {});
    EXPECT_TRUE(json) << json.error().message;
    if (json) text = json->value(key, "");
  }
  EXPECT_EQ(sha256_hex(text), found.path_sha256) << row;
  return text;
}

std::string sha256_hex(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EXPECT_EQ(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr), 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace octet::testing
