// The small hub of tests/tools/hub_server.py, as a child process.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/interactive_child.h"
#include "tests/support/temp_folder.h"

namespace octet::testing {

class HubServer {
 public:
  enum class Scheme { kHttp, kHttps };  // kHttps: with a certificate that certificate() names
  explicit HubServer(Scheme scheme = Scheme::kHttp);

  void add(const std::string& repository, const std::string& path, std::string_view bytes) const;
  void set_faults(const std::string& json) const;
  void set_rules(const std::string& json) const;
  // Lines "hub PATH RANGE TOKEN" and "elsewhere PATH RANGE TOKEN"; those that hold a text.
  std::vector<std::string> requests(std::string_view with = "") const;
  std::string endpoint() const;
  std::filesystem::path certificate() const { return folder_.path() / "certificate.pem"; }

  // An environment in which `octet` knows this hub alone, with its cache in `home`/hub.
  std::map<std::string, std::string> environment(const std::filesystem::path& home) const;

 private:
  TempFolder folder_;
  Scheme scheme_;
  std::unique_ptr<InteractiveChild> child_;
};

}  // namespace octet::testing
