// The life of `octet serve`: bind, load, serve, drain.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "octet/engine/replica.h"
#include "octet/server/front.h"
#include "octet/server/http_server.h"
#include "octet/server/openai_prepare.h"

namespace octet::server {

struct ServeOptions {
  HttpServerOptions http;
  FrontOptions front;
  ApiOptions api;
  engine::ReplicaOptions replica;
  bool log_stats = true;                               // a line about throughput and load, and the engine's metrics
  std::vector<std::string> names;                      // what clients call the model; empty: the path as given
  std::chrono::milliseconds shutdown_timeout{30'000};  // for running requests after SIGTERM
  // An engine with work that makes no progress for longer turns /health to 503; none: never.
  std::optional<std::chrono::milliseconds> watchdog{60'000};
};

using ReplicaLoader = std::function<Result<std::unique_ptr<engine::Replica>>(const engine::ReplicaOptions&)>;

// Binds before it loads, so that a port in use is known at once and probes are answered meanwhile. Returns the exit
// status after SIGTERM or SIGINT: 0 when all requests were finished. A second signal, or one while loading, ends at
// once. With TLS, SIGHUP reads the certificate again. Called from the main thread, before any other thread exists.
int serve(const ServeOptions& options, const ReplicaLoader& load = engine::load_replica);

// A command line that asks the model something: a chat where there is a template, else token ids or text.
// tls: how to speak on a Unix socket, whose url does not tell.
std::string example_curl(const std::string& url, const std::string& name, const engine::Replica& replica,
                         bool tls = false);

}  // namespace octet::server
