// octet: one program, one subcommand per job.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "apps/octet/commands.h"
#include "octet/base/edit_distance.h"

namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(int argc, char** argv);
};

constexpr Command kCommands[] = {
    {"serve", "serve a model over the OpenAI API", serve_command},
    {"run", "chat in the terminal", run_command},
    {"pull", "bring a model into the local cache", pull_command},
    {"render", "show the text that a model sees of a chat", render_command},
    {"tokenize", "turn text into token ids, and back", tokenize_command},
    {"bench", "measure a server, or the engine alone", bench_command},
};

constexpr std::string_view kExamples = R"text(
examples
  octet serve smollm2        fetch a small model and serve it on 127.0.0.1:8000
  octet serve ORG/NAME       a model of the Hugging Face hub; or a folder, or a GGUF file
  octet run smollm2          chat in the terminal
  octet pull ORG/NAME        only fetch; the last line is the model's path
  octet COMMAND --help       every flag of a command
)text";

int help(std::FILE* stream) {
  fmt::print(stream,
             "octet {}: serves large language models over the OpenAI API\n\nusage: octet COMMAND [flags]\n\ncommands\n",
             OCTET_VERSION);
  for (const Command& command : kCommands) fmt::print(stream, "  {:<12}{}\n", command.name, command.summary);
  fmt::print(stream, "{}", kExamples);
  return stream == stdout ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--version" || word == "version") {
    fmt::print("octet {}\n", OCTET_VERSION);
    return 0;
  }
  if (word == "--help" || word == "-h" || word == "help") return help(stdout);
  for (const Command& command : kCommands)
    if (word == command.name) return command.run(argc - 1, argv + 1);
  if (word.empty()) return help(stderr);
  fmt::print(stderr, "octet: no command '{}'", word);
  for (const Command& command : kCommands) {
    if (octet::edit_distance(word, command.name) <= 2) fmt::print(stderr, "; did you mean {}?", command.name);
  }
  fmt::print(stderr, "\n\n");
  return help(stderr);
}
