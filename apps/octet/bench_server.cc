#include "apps/octet/bench_server.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>

#include "apps/octet/model_name.h"
#include "apps/octet/pull_signals.h"
#include "octet/base/environment.h"
#include "octet/base/json.h"
#include "octet/bench/answer_reader.h"
#include "octet/bench/datasets.h"
#include "octet/text/chat_templates.h"

using octet::ErrorCode;
using octet::fail;
using octet::Json;
using octet::Result;
using octet::bench::HttpReply;
using octet::bench::HttpTarget;

namespace {

constexpr std::int64_t kAskMs = 10'000;
constexpr auto kBetweenTries = std::chrono::milliseconds(500);

std::string trim_slashes(std::string url) {
  while (url.ends_with('/') && !url.ends_with("//")) url.pop_back();
  return url;
}

Result<std::vector<std::string>> headers_of(const BenchServeFlags& flags) {
  std::vector<std::string> headers;
  bool has_key = false;
  for (const std::string& one : flags.headers) {
    const std::size_t at = one.find_first_of("=:");
    if (at == std::string::npos || at == 0 || one.find_first_of("\r\n") != std::string::npos)
      return fail(ErrorCode::kInvalid, "--header \"{}\": expected KEY=VALUE", one);
    std::string name = one.substr(0, at);
    headers.push_back(name + ": " + one.substr(at + 1));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    has_key |= name == "authorization";
  }
  if (const auto key = octet::environment("OPENAI_API_KEY"); key && !has_key)
    headers.push_back("Authorization: Bearer " + *key);
  return headers;
}

// A GET of a path beside that of requests.
Result<HttpReply> ask(HttpTarget target, std::string url) {
  target.url = std::move(url);
  return octet::bench::http_get(target, kAskMs, [] { return octet::hub::stop_signal != 0; });
}

// What /v1/models answers of a server that is there and has loaded its model. Some tell that by /ready, some by
// /health; who knows neither path is taken at its word.
Result<HttpReply> ask_once(const HttpTarget& target, const std::string& url) {
  for (const char* path : {"/ready", "/health"}) {
    OCTET_TRY(const HttpReply reply, ask(target, url + path));
    if (reply.status == 503)
      return fail(ErrorCode::kIo, "{}{}: HTTP 503: {}: --ready-check-timeout-sec waits for it", url, path,
                  octet::bench::error_text(reply.body));
  }
  return ask(target, url + "/v1/models");
}

Result<HttpReply> ask_models(const BenchServeFlags& flags, const HttpTarget& target, const std::string& url) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(flags.ready_timeout);
  for (;;) {
    auto reply = ask_once(target, url);
    if (reply || reply.error().code != ErrorCode::kIo || std::chrono::steady_clock::now() >= deadline) return reply;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

const Json* entry_of(const Json& models, const std::string& name) {
  if (!models.is_object() || !models.contains("data") || !models["data"].is_array()) return nullptr;
  for (const Json& one : models["data"]) {
    if (one.is_object() && one.contains("id") && one["id"].is_string() && (name.empty() || one["id"] == name))
      return &one;
  }
  return nullptr;
}

Result<Server> find_server(const BenchServeFlags& flags, const std::string& url,
                           const octet::bench::Workload& workload) {
  Server server{.url = trim_slashes(url)};
  if (server.url.ends_with("//")) return fail(ErrorCode::kInvalid, "--base-url {} is no URL: it names no host", url);
  OCTET_TRY(server.http.headers, headers_of(flags));
  server.http.verify = !flags.insecure;
  server.http.timeout_ms = static_cast<std::int64_t>(flags.request_timeout * 1000);
  server.model = flags.served_model_name ? *flags.served_model_name : flags.model.value_or("");
  OCTET_TRY(const HttpReply reply, ask_models(flags, server.http, server.url));
  // A server without that list can be loaded where the model's name is known.
  if (reply.status != 200 && server.model.empty())
    return fail(ErrorCode::kIo, "{}/v1/models: HTTP {}: {}: give the model's name by --model", server.url, reply.status,
                octet::bench::error_text(reply.body));
  const auto models = octet::parse_json(reply.body);
  if (const Json* entry = reply.status == 200 && models ? entry_of(*models, server.model) : nullptr) {
    server.model = (*entry)["id"].get<std::string>();
    const bool made = !flags.workload.path;
    if (made && entry->contains("max_model_len") && (*entry)["max_model_len"].is_number_integer())
      OCTET_TRY_VOID(octet::bench::check_context(workload, (*entry)["max_model_len"].get<std::int64_t>()));
  } else if (server.model.empty()) {
    return fail(ErrorCode::kNotFound, "{} lists no model: give its name by --model", server.url);
  }
  const char* path = is_chat(flags) ? "/v1/chat/completions" : "/v1/completions";
  server.http.url = server.url + flags.endpoint.value_or(path);
  return server;
}

// Where the tokenizer is; none: nothing names one.
Result<std::optional<std::filesystem::path>> text_path(const BenchServeFlags& flags) {
  if (flags.tokenizer) {
    OCTET_TRY(const auto path, resolve_tokenizer_name(*flags.tokenizer, {}));
    return path.value_or(*flags.tokenizer);
  }
  std::error_code ignored;
  if (!flags.model) return std::nullopt;
  if (std::filesystem::exists(*flags.model, ignored)) return *flags.model;
  return cached_model(*flags.model);
}

}  // namespace

bool is_chat(const BenchServeFlags& flags) { return flags.backend == "openai-chat"; }

Result<std::vector<Server>> find_servers(const BenchServeFlags& flags, const octet::bench::Workload& workload) {
  std::vector<std::string> urls = flags.base_urls;
  const bool bracketed = flags.host.find(':') != std::string::npos && !flags.host.starts_with('[');
  if (urls.empty())
    urls.push_back(fmt::format("http://{}:{}", bracketed ? "[" + flags.host + "]" : flags.host, flags.port));
  std::vector<Server> servers;
  for (const std::string& url : urls) {
    OCTET_TRY(Server server, find_server(flags, url, workload));
    servers.push_back(std::move(server));
  }
  return servers;
}

Result<BenchText> bench_text(const BenchServeFlags& flags, bool with_templates) {
  const std::string_view flag = flags.tokenizer ? "--tokenizer" : "--model";
  OCTET_TRY(const auto path, text_path(flags));
  BenchText text;
  if (!path) return text;
  OCTET_TRY(text.tokenizer, within_flag(flag, octet::text::Tokenizer::open(*path)));
  // A lone tokenizer.json has no templates, nor other files that they would be in.
  if (!with_templates || !(std::filesystem::is_directory(*path) || path->extension() == ".gguf")) return text;
  OCTET_TRY(auto files, within_flag(flag, read_model_texts(*path)));
  if (files.chat_templates.empty()) return text;
  OCTET_TRY(text.templates, within_flag(flag, parse_templates(std::move(files))));
  return text;
}

Result<std::string> prompt_in_template(const ModelTemplates& templates, std::string prompt) {
  OCTET_TRY(const octet::text::NamedTemplate* const chosen, templates.templates.choose(false));
  octet::text::RenderInput input{.variables = templates.variables, .now = octet::text::local_time(std::time(nullptr))};
  input.messages.push_back({{"role", "user"}, {"content", std::move(prompt)}});
  OCTET_TRY(octet::text::Rendered rendered,
            chosen->render_adapted(std::move(input), octet::text::ContentFormat::kAuto));
  return std::move(rendered.text);
}
