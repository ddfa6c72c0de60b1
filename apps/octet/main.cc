// octet: one program, one subcommand per job.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "apps/octet/command_table.h"
#include "apps/octet/commands.h"

namespace {

constexpr Command kCommands[] = {
    {"serve", "serve a model over the OpenAI API", serve_command},
    {"run", "chat in the terminal", run_command},
    {"pull", "bring a model into the local cache", pull_command},
    {"render", "show the text that a model sees of a chat", render_command},
    {"tokenize", "turn text into token ids, and back", tokenize_command},
    {"bench", "measure a server", bench_command},
};

constexpr std::string_view kExamples = R"text(
examples
  octet serve smollm2        fetch a small model and serve it on 127.0.0.1:8000
  octet serve ORG/NAME       a model of the Hugging Face hub; or a folder, or a GGUF file
  octet run smollm2          chat in the terminal
  octet pull ORG/NAME        only fetch; the last line is the model's path
  octet COMMAND --help       every flag of a command
)text";

}  // namespace

int main(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--version" || word == "version") {
    fmt::print("octet {}\n", OCTET_VERSION);
    return 0;
  }
  const std::string title = fmt::format("octet {}: serves large language models over the OpenAI API", OCTET_VERSION);
  return run_command_of({"octet", title, kCommands, kExamples}, argc, argv);
}
