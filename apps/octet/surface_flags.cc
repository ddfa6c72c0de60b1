#include "apps/octet/surface_flags.h"

#include <algorithm>

#include "octet/base/environment.h"
#include "octet/base/json.h"

using octet::ErrorCode;
using octet::fail;
using octet::Flag;
using octet::Result;

namespace {

Result<std::vector<std::string>> parse_list(std::string_view flag, const std::string& text) {
  const auto json = octet::parse_json(text);
  const auto is_text = [](const octet::Json& value) { return value.is_string(); };
  if (!json || !json->is_array() || !std::ranges::all_of(*json, is_text)) {
    return fail(ErrorCode::kInvalid, R"({} {}: expected a JSON list of strings, as in '["https://example.org"]')", flag,
                text);
  }
  auto list = json->get<std::vector<std::string>>();
  // These are sent as header fields, which a line end would end.
  const auto is_plain = [](const std::string& value) {
    return !value.empty() && std::ranges::all_of(value, [](char c) { return c > ' ' && c < 0x7f; });
  };
  if (!std::ranges::all_of(list, is_plain)) {
    return fail(ErrorCode::kInvalid, "{} {}: expected strings of visible ASCII characters without spaces", flag, text);
  }
  return list;
}

// VLLM_API_KEY counts where the flag is not given. A key that could not be sent, or is empty, is a mistake: without a
// key the server would be open.
Result<std::vector<std::string>> api_keys(const SurfaceFlags& flags) {
  std::vector<std::string> keys = flags.api_keys;
  std::string_view source = "--api-key";
  if (keys.empty()) {
    if (auto key = octet::environment("VLLM_API_KEY")) keys.push_back(*std::move(key));
    source = "VLLM_API_KEY";
  }
  for (const std::string& key : keys) {
    if (key.empty()) return fail(ErrorCode::kInvalid, "{}: a key is empty", source);
    if (!std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; })) {
      return fail(ErrorCode::kInvalid, "{}: a key holds a space, or a character beyond ASCII", source);
    }
  }
  return keys;
}

Result<std::string> root_path(const SurfaceFlags& flags) {
  std::string path = flags.root_path.value_or("");
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty() && !path.starts_with('/')) path.insert(path.begin(), '/');
  if (!std::ranges::all_of(path, [](char c) { return c > ' ' && c <= '~' && c != '?' && c != '#' && c != '%'; })) {
    return fail(ErrorCode::kInvalid, "--root-path {}: expected a path of plain characters, as in /llm",
                *flags.root_path);
  }
  return path;
}

Result<std::optional<octet::server::TlsOptions>> tls_options(const SurfaceFlags& flags) {
  if (!flags.ssl_cert_file) {
    const std::pair<std::string_view, bool> others[] = {{"--ssl-keyfile", flags.ssl_key_file.has_value()},
                                                        {"--ssl-ca-certs", flags.ssl_ca_file.has_value()},
                                                        {"--ssl-ciphers", flags.ssl_ciphers.has_value()},
                                                        {"--enable-ssl-refresh", flags.ssl_refresh},
                                                        {"--ssl-cert-reqs", flags.ssl_cert_reqs != 0}};
    for (const auto& [name, given] : others) {
      if (given) return fail(ErrorCode::kInvalid, "{}: needs --ssl-certfile", name);
    }
    return std::nullopt;
  }
  return octet::server::TlsOptions{.cert_file = *flags.ssl_cert_file,
                                   .key_file = flags.ssl_key_file.value_or(""),
                                   .ca_file = flags.ssl_ca_file.value_or(""),
                                   .cert_reqs = static_cast<int>(flags.ssl_cert_reqs),
                                   .ciphers = flags.ssl_ciphers.value_or(""),
                                   .watch_files = flags.ssl_refresh};
}

std::vector<Flag> access_rows(SurfaceFlags& f) {
  constexpr std::string_view group = "keys and origins";
  return {
      {.names = "--api-key",
       .group = group,
       .target = &f.api_keys,
       .help = "keys, one of which every request must show but probes, /version, /metrics and the page",
       .fallback = "VLLM_API_KEY, or none: everybody may ask"},
      {.names = "--guard-metrics", .group = group, .target = &f.guard_metrics, .help = "/metrics asks for a key, too"},
      {.names = "--allowed-origins",
       .group = group,
       .target = &f.allowed_origins,
       .help = "JSON list of the origins whose pages may ask; \"*\": any"},
      {.names = "--allowed-methods",
       .group = group,
       .target = &f.allowed_methods,
       .help = "JSON list of the methods that such pages may use"},
      {.names = "--allowed-headers",
       .group = group,
       .target = &f.allowed_headers,
       .help = "JSON list of the headers that such pages may send"},
      {.names = "--allow-credentials",
       .group = group,
       .target = &f.allow_credentials,
       .help = "such pages may send cookies"},
      {.names = "--root-path",
       .group = group,
       .target = &f.root_path,
       .help = "what a proxy puts before every path, as /llm"},
      {.names = "--enable-request-id-headers",
       .group = group,
       .target = &f.request_ids,
       .help = "answers carry X-Request-Id: the client's, or a new one"},
      {.names = "--enable-server-load-tracking",
       .group = group,
       .target = &f.load_tracking,
       .help = "/load counts the requests in flight; always on"},
      {.names = "--disable-ui", .group = group, .target = &f.disable_ui, .help = "no chat page at /"},
  };
}

std::vector<Flag> tls_rows(SurfaceFlags& f) {
  constexpr std::string_view group = "TLS";
  return {
      {.names = "--ssl-certfile",
       .group = group,
       .target = &f.ssl_cert_file,
       .help = "PEM file: the certificate, then those that signed it; switches TLS on"},
      {.names = "--ssl-keyfile",
       .group = group,
       .target = &f.ssl_key_file,
       .help = "PEM file of the private key, without a pass phrase",
       .fallback = "in --ssl-certfile"},
      {.names = "--ssl-ca-certs",
       .group = group,
       .target = &f.ssl_ca_file,
       .help = "PEM file of those who sign clients' certificates"},
      {.names = "--ssl-cert-reqs",
       .group = group,
       .target = &f.ssl_cert_reqs,
       .help = "certificates of clients: 0 none, 1 checked where there is one, 2 required",
       .min = 0,
       .max = 2},
      {.names = "--ssl-ciphers",
       .group = group,
       .target = &f.ssl_ciphers,
       .help = "ciphers for TLS 1.2, as OpenSSL lists them"},
      {.names = "--enable-ssl-refresh",
       .group = group,
       .target = &f.ssl_refresh,
       .help = "certificate and key are read again when their files change; SIGHUP does so in any case"},
  };
}

}  // namespace

std::vector<Flag> surface_flag_rows(SurfaceFlags& flags) {
  std::vector<Flag> rows = access_rows(flags);
  for (Flag& row : tls_rows(flags)) rows.push_back(std::move(row));
  return rows;
}

Result<> apply_surface_flags(const SurfaceFlags& flags, octet::server::ServeOptions& options) {
  octet::server::FrontOptions& front = options.front;
  OCTET_TRY(front.api_keys, api_keys(flags));
  front.guard_metrics = flags.guard_metrics;
  OCTET_TRY(front.cors.origins, parse_list("--allowed-origins", flags.allowed_origins));
  OCTET_TRY(front.cors.methods, parse_list("--allowed-methods", flags.allowed_methods));
  OCTET_TRY(front.cors.headers, parse_list("--allowed-headers", flags.allowed_headers));
  front.cors.credentials = flags.allow_credentials;
  OCTET_TRY(front.root_path, root_path(flags));
  front.request_ids = flags.request_ids;
  front.chat_page = !flags.disable_ui;
  OCTET_TRY(options.http.tls, tls_options(flags));
  return {};
}
