#include "tests/support/hub_server.h"

#include <fstream>
#include <stdexcept>

namespace octet::testing {

HubServer::HubServer(Scheme scheme) : scheme_(scheme) {
  const auto root = folder_.path();
  std::filesystem::create_directories(root / "repositories");
  std::vector<std::string> command = {"python3", "tests/tools/hub_server.py", root.string()};
  if (scheme == Scheme::kHttps) {
    const std::string key = (root / "key.pem").string();
    const ChildResult made = run_to_end(
        {.command = {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                     "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate().string()},
         .environment = {}});
    if (made.status != 0) throw std::runtime_error("openssl: " + made.err);
    command.insert(command.end(), {certificate().string(), key});
  }
  child_ = std::make_unique<InteractiveChild>(ChildSetup{.command = command, .environment = {}});
  if (!comes_true([&] { return std::filesystem::exists(root / "ports") || !child_->runs(); }) || !child_->runs()) {
    throw std::runtime_error("hub_server.py did not start: " + child_->errors());
  }
}

void HubServer::add(const std::string& repository, const std::string& path, std::string_view bytes) const {
  folder_.write(std::filesystem::path("repositories") / repository / path, bytes);
}

void HubServer::set_faults(const std::string& json) const { folder_.write("faults.json", json); }
void HubServer::set_rules(const std::string& json) const { folder_.write("rules.json", json); }

std::vector<std::string> HubServer::requests(std::string_view with) const {
  std::vector<std::string> lines;
  std::ifstream log(folder_.path() / "requests.log");
  for (std::string line; std::getline(log, line);) {
    if (line.find(with) != line.npos) lines.push_back(line);
  }
  return lines;
}

std::string HubServer::endpoint() const {
  std::string port;
  std::ifstream(folder_.path() / "ports") >> port;
  return (scheme_ == Scheme::kHttps ? "https://127.0.0.1:" : "http://127.0.0.1:") + port;
}

std::map<std::string, std::string> HubServer::environment(const std::filesystem::path& home) const {
  std::map<std::string, std::string> variables = {
      {"HF_ENDPOINT", endpoint()}, {"HF_HOME", home.string()}, {"no_proxy", "*"}};
  for (const char* name :
       {"HF_TOKEN", "HF_TOKEN_PATH", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
        "HF_HUB_OFFLINE", "HF_HUB_DOWNLOAD_TIMEOUT", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    variables[name] = "";
  }
  return variables;
}

}  // namespace octet::testing
