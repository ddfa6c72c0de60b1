// Commands by name: their list as help, and the way to one of them.
#pragma once
#include <span>
#include <string_view>

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(int argc, char** argv);  // argv[0] is the command's own name; the value is the exit status
};

struct CommandTable {
  std::string_view program;  // what stands before a command: "octet bench"
  std::string_view title;    // the first line of help
  std::span<const Command> commands;
  std::string_view examples;
};

// Runs the command that argv[1] names. help, --help and -h print the list; so does a missing or unknown name, after an
// error that tells the nearest one, with status 2.
int run_command_of(const CommandTable& table, int argc, char** argv);
