// What /metrics answers: vLLM's names, labels and buckets as far as the engine counts them.
#pragma once
#include <string>

#include "octet/server/service.h"

namespace octet::server {

// In Prometheus' text format. While the model loads: the server's own counters only.
std::string metrics_text(const Service& service);

}  // namespace octet::server
