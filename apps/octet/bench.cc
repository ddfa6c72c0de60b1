// `octet bench`: measures a server.
#include "apps/octet/bench_commands.h"
#include "apps/octet/command_table.h"
#include "apps/octet/commands.h"

namespace {

constexpr Command kCommands[] = {
    {"serve", "load a server with an OpenAI API and report its times and rates", bench_serve_command},
    {"throughput", "requests and tokens per second of an engine in this process", bench_throughput_command},
    {"latency", "seconds of a batch in an engine of this process", bench_latency_command},
    {"compare", "runs that were written to files, beside each other", bench_compare_command},
};

constexpr std::string_view kExamples = R"text(
examples
  octet bench serve --base-url http://127.0.0.1:8000 --num-prompts 100 --max-concurrency 8
  octet bench serve --preset chat-5600-140 --concurrency 1,2,4,...,64 --slo ttft:p90=2000ms,tpot:p90=50ms
  octet bench throughput smollm2 --num-prompts 64 --input-len 256 --output-len 64
  octet bench latency smollm2 --batch-size 4
  octet bench compare before.json after.json
  octet bench COMMAND --help     every flag of a command
)text";

}  // namespace

int bench_command(int argc, char** argv) {
  return run_command_of({"octet bench", "octet bench: measures what a server gives", kCommands, kExamples}, argc, argv);
}
