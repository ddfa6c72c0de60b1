// The servers that `octet bench serve` loads.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/octet/bench_serve_flags.h"
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
// of the model where none was given, and for the length of its context. Errors: nobody is there; a prompt of the
// workload and its answer do not fit the context (both lengths are named).
octet::Result<std::vector<Server>> find_servers(const BenchServeFlags& flags, const octet::bench::Workload& workload);

// Of --tokenizer, else of --model where that is a file, a folder, or a name that was fetched before; null: none.
octet::Result<std::unique_ptr<octet::text::Tokenizer>> bench_tokenizer(const BenchServeFlags& flags);

// Puts a flag before an error's message.
template <typename T>
octet::Result<T> within_flag(std::string_view flag, octet::Result<T> result) {
  if (!result) return octet::within(flag, std::move(result).error());
  return result;
}
