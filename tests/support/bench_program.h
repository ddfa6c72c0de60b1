// `octet bench serve` run to its end.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/test_server.h"

namespace octet::testing {

inline ChildOutcome run_bench(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {OCTET_PROGRAM, "bench", "serve", "--disable-tqdm"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_child(command, 60);
}

inline std::string url_of(TestServer& server) { return fmt::format("http://127.0.0.1:{}", server.port()); }

}  // namespace octet::testing
