// Files of published packages that golden data refers to (tests/golden/text/packages.tsv), as tools/fetch_test_data.py
// puts them into the cache.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace octet::testing {

struct PackageRow {
  std::string name, package, version, path, path_sha256;
};

const std::vector<PackageRow>& package_rows();

// The file of the row. Where it is not in the cache the test fails, with the command that brings it.
std::filesystem::path package_file(const std::string& row);
// A file inside a package that has a row; `member` is its path in there.
std::filesystem::path package_member(const std::string& package, const std::string& member);
// The whole file; checked against the digest where one is given.
std::string read_package_file(const std::filesystem::path& path, const std::string& digest = "");
// What the row names: the file, or the string under its key, checked against its digest.
std::string package_text(const std::string& row);

std::string sha256_hex(const std::string& text);

}  // namespace octet::testing
