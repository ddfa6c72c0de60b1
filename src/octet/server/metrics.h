// What /metrics answers: vLLM's names, labels and buckets, and Octet's own. docs/operations.md lists them.
#pragma once
#include <string>

#include "octet/server/service.h"

namespace octet::server {

// In Prometheus' text format. While the model loads, or without engine_metrics: the server's own counters only.
std::string metrics_text(const Service& service, bool engine_metrics = true);

}  // namespace octet::server
