// Where the hub is, where its cache lies and who asks: what huggingface_hub reads from the environment, read alike.
#pragma once
#include <chrono>
#include <filesystem>
#include <string>

#include "octet/base/error.h"

namespace octet::hub {

struct Settings {
  std::string endpoint;            // HF_ENDPOINT, else the public hub; without a slash at its end
  std::filesystem::path cache;     // HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub
  std::string token;               // HF_TOKEN, else the file HF_TOKEN_PATH or HF_HOME/token; empty: none
  std::string token_source;        // for messages: the variable's name or the file's path
  bool offline = false;            // HF_HUB_OFFLINE
  std::string certificates;        // SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE; empty: the system's
  std::chrono::seconds stall{30};  // HF_HUB_DOWNLOAD_TIMEOUT: a connection that brings nothing for so long is dropped
};

Result<Settings> read_settings();

}  // namespace octet::hub
