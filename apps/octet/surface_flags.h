// The flags of `octet serve` that shape its HTTP surface: keys, cross-origin requests, TLS, paths, the page.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/base/error.h"
#include "octet/base/flags.h"
#include "octet/server/serve.h"

struct SurfaceFlags {
  std::vector<std::string> api_keys;
  std::string allowed_origins = "[]", allowed_methods = R"(["*"])", allowed_headers = R"(["*"])";
  std::optional<std::string> ssl_key_file, ssl_cert_file, ssl_ca_file, ssl_ciphers, root_path;
  std::int64_t ssl_cert_reqs = 0;
  bool guard_metrics = false, allow_credentials = false, ssl_refresh = false, request_ids = false, load_tracking = true;
  bool disable_ui = false;
};

std::vector<octet::Flag> surface_flag_rows(SurfaceFlags& flags);
// Sets options.front and options.http.tls; errors name the flag.
octet::Result<> apply_surface_flags(const SurfaceFlags& flags, octet::server::ServeOptions& options);
