#include "apps/octet/command_table.h"

#include <fmt/format.h>

#include <cstdio>

#include "octet/base/edit_distance.h"

namespace {

int help(const CommandTable& table, std::FILE* stream) {
  fmt::print(stream, "{}\n\nusage: {} COMMAND [flags]\n\ncommands\n", table.title, table.program);
  for (const Command& command : table.commands) fmt::print(stream, "  {:<12}{}\n", command.name, command.summary);
  fmt::print(stream, "{}", table.examples);
  return stream == stdout ? 0 : 2;
}

}  // namespace

int run_command_of(const CommandTable& table, int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--help" || word == "-h" || word == "help") return help(table, stdout);
  for (const Command& command : table.commands)
    if (word == command.name) return command.run(argc - 1, argv + 1);
  if (word.empty()) return help(table, stderr);
  fmt::print(stderr, "{}: no command '{}'", table.program, word);
  for (const Command& command : table.commands) {
    if (octet::edit_distance(word, command.name) <= 2) fmt::print(stderr, "; did you mean {}?", command.name);
  }
  fmt::print(stderr, "\n\n");
  return help(table, stderr);
}
