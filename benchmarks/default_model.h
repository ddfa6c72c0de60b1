// The model that `make serve` serves, for benchmarks.
#pragma once
#include <string>

#include "tests/support/child_process.h"

namespace octet::testing {

// Its path, fetched where it is missing; empty where that fails.
inline std::string default_model() {
  const ChildOutcome pulled = run_child({OCTET_PROGRAM, "pull", "smollm2"}, 600);
  const std::string text = pulled.output.substr(0, pulled.output.find_last_not_of('\n') + 1);
  return pulled.exit_code == 0 ? text.substr(text.rfind('\n') + 1) : "";
}

}  // namespace octet::testing
