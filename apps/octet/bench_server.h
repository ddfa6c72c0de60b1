// The servers that `octet bench serve` loads.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/octet/bench_serve_flags.h"
#include "apps/octet/model_templates.h"
#include "octet/base/error.h"
#include "octet/bench/curl_transport.h"
#include "octet/bench/workload.h"
#include "octet/text/tokenizer.h"

struct Server {
  std::string url;    // as given
  std::string model;  // as requests name it
  octet::bench::HttpTarget http;
};

bool is_chat(const BenchServeFlags& flags);

// Those of --base-url, else of --host and --port. Waits for them as --ready-check-timeout-sec says, asks for the name
// of the model where none was given, and for the length of its context. Errors: nobody is there; a prompt that was made
// and its answer do not fit the context (both lengths are named). Lines of a file that do not fit fail one by one.
octet::Result<std::vector<Server>> find_servers(const BenchServeFlags& flags, const octet::bench::Workload& workload);

// What a model's text consists of on this side.
struct BenchText {
  std::unique_ptr<octet::text::Tokenizer> tokenizer;  // null: none
  std::optional<ModelTemplates> templates;            // none: not wanted, or the model has no templates
};
// Of --tokenizer, else of --model where that is a file, a folder, or a name that was fetched before. with_templates:
// the chat templates are wanted, too.
octet::Result<BenchText> bench_text(const BenchServeFlags& flags, bool with_templates);

// A prompt as the one message of a user.
octet::Result<std::string> prompt_in_template(const ModelTemplates& templates, std::string prompt);

// Puts a flag before an error's message.
template <typename T>
octet::Result<T> within_flag(std::string_view flag, octet::Result<T> result) {
  if (!result) return octet::within(flag, std::move(result).error());
  return result;
}
