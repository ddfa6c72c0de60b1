// `octet bench`: measures a server, or the engine alone.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "apps/octet/bench_commands.h"
#include "apps/octet/commands.h"
#include "octet/base/edit_distance.h"

namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"serve", "load a server with an OpenAI API and report its times and rates", bench_serve_command},
    {"compare", "runs that were written to files, beside each other", bench_compare_command},
};

constexpr std::string_view kExamples = R"text(
examples
  octet bench serve --base-url http://127.0.0.1:8000 --num-prompts 100 --max-concurrency 8
  octet bench serve --preset chat-5600-140 --concurrency 1,2,4,...,64 --slo ttft:p90=2000ms,tpot:p90=50ms
  octet bench compare before.json after.json
  octet bench COMMAND --help     every flag of a command
)text";

int help(std::FILE* stream) {
  fmt::print(stream, "octet bench: measures what a server gives\n\nusage: octet bench COMMAND [flags]\n\ncommands\n");
  for (const Command& command : kCommands) fmt::print(stream, "  {:<12}{}\n", command.name, command.summary);
  fmt::print(stream, "{}", kExamples);
  return stream == stdout ? 0 : 2;
}

}  // namespace

int bench_command(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--help" || word == "-h" || word == "help") return help(stdout);
  for (const Command& command : kCommands)
    if (word == command.name) return command.run(argc - 1, argv + 1);
  if (word.empty()) return help(stderr);
  fmt::print(stderr, "octet bench: no command '{}'", word);
  for (const Command& command : kCommands) {
    if (octet::edit_distance(word, command.name) <= 2) fmt::print(stderr, "; did you mean {}?", command.name);
  }
  fmt::print(stderr, "\n\n");
  return help(stderr);
}
