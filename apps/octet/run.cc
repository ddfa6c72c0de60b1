// octet run: a chat in the terminal, or one answer for a pipe.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "apps/octet/commands.h"
#include "apps/octet/loading_line.h"
#include "apps/octet/model_name.h"
#include "apps/octet/pull_signals.h"
#include "apps/octet/run_chat.h"
#include "apps/octet/run_session.h"
#include "apps/octet/template_flag.h"
#include "octet/base/environment.h"
#include "octet/base/flags.h"
#include "octet/base/json.h"
#include "octet/base/log.h"
#include "octet/base/utf8.h"
#include "octet/engine/replica.h"

namespace fs = std::filesystem;
using octet::ErrorCode;
using octet::fail;
using octet::Flag;
using octet::Json;
using octet::Result;

namespace {

constexpr std::size_t kMaxPromptBytes = std::size_t{64} << 20;
// Fixed, so that the start measures nothing; few enough that Ctrl-C acts at once in a long prompt.
constexpr std::int32_t kStepTokens = 256;

struct RunFlags {
  std::string model, dtype = "auto", log_level = "warning";
  std::optional<std::string> prompt, system, tokenizer, chat_template, chat_template_kwargs, revision;
  std::optional<double> temperature, top_p, min_p;
  std::optional<std::int64_t> top_k, max_tokens, seed, threads, max_model_len;
  bool verbose = false;
};

std::vector<Flag> chat_flags(RunFlags& f) {
  constexpr std::string_view group = "chat", own = "the model's own";
  constexpr double kMaxInt = std::numeric_limits<std::int32_t>::max();
  return {
      {.names = "MODEL",
       .group = group,
       .target = &f.model,
       .help = "folder with config.json, a GGUF file, ORG/NAME[:Q4_K_M] of the hub, or smollm2",
       .required = true},
      {.names = "PROMPT",
       .group = group,
       .target = &f.prompt,
       .help = "answer this and end; what comes through a pipe "
               "is put behind it"},
      {.names = "--system", .group = group, .target = &f.system, .help = "the system prompt"},
      {.names = "--verbose", .group = group, .target = &f.verbose, .help = "TTFT and tokens/s after each reply"},
      {.names = "--temperature",
       .group = group,
       .target = &f.temperature,
       .help = "0: always the likeliest token",
       .fallback = own,
       .min = 0,
       .max = 2},
      {.names = "--top-p",
       .group = group,
       .target = &f.top_p,
       .help = "share of the likeliest tokens that are drawn from",
       .fallback = own,
       .min = 0,
       .max = 1},
      {.names = "--top-k",
       .group = group,
       .target = &f.top_k,
       .help = "number of tokens that are drawn from; 0: all",
       .fallback = own,
       .min = 0,
       .max = kMaxInt},
      {.names = "--min-p",
       .group = group,
       .target = &f.min_p,
       .help = "least probability beside that of the likeliest",
       .fallback = "0",
       .min = 0,
       .max = 1},
      {.names = "--max-tokens",
       .group = group,
       .target = &f.max_tokens,
       .help = "tokens of a reply",
       .fallback = "the model's, or what the context leaves",
       .min = 1,
       .max = kMaxInt},
      {.names = "--seed",
       .group = group,
       .target = &f.seed,
       .help = "the same seed gives the same replies",
       .fallback = "drawn"},
  };
}

std::vector<Flag> model_flags(RunFlags& f) {
  constexpr std::string_view group = "model";
  return {
      {.names = "--revision",
       .group = group,
       .target = &f.revision,
       .help = "branch, tag or commit on the hub",
       .fallback = "main"},
      {.names = "--tokenizer",
       .group = group,
       .target = &f.tokenizer,
       .help = "tokenizer.json, a folder that holds it, or ORG/NAME of the hub",
       .fallback = "the model's own"},
      {.names = "--chat-template",
       .group = group,
       .target = &f.chat_template,
       .help = "file of a Jinja template",
       .fallback = "the model's own"},
      {.names = "--chat-template-kwargs",
       .group = group,
       .target = &f.chat_template_kwargs,
       .help = "JSON object for the template, as in '{\"enable_thinking\": false}'"},
      {.names = "--dtype",
       .group = group,
       .target = &f.dtype,
       .help = "type of activations and of the KV cache",
       .choices = "auto,float32,float,bfloat16,float16,half"},
      {.names = "--max-model-len",
       .group = group,
       .target = &f.max_model_len,
       .help = "context in tokens",
       .fallback = "the model's, or what memory holds",
       .min = 1,
       .max = 1e9},
      {.names = "--threads",
       .group = group,
       .target = &f.threads,
       .help = "threads of the model",
       .fallback = "the cores that the process may use",
       .min = 1,
       .max = 4096},
      {.names = "--log-level",
       .group = group,
       .target = &f.log_level,
       .help = "least level that is logged",
       .choices = "debug,info,warning,error,off"},
  };
}

// What every request carries.
Result<Json> request_fields(const RunFlags& f) {
  Json fields = Json::object();
  const auto set = [&](const char* name, const auto& value) {
    if (value) fields[name] = *value;
  };
  set("temperature", f.temperature);
  set("top_p", f.top_p);
  set("min_p", f.min_p);
  set("top_k", f.top_k);
  set("max_tokens", f.max_tokens);
  set("seed", f.seed);
  if (f.chat_template_kwargs) {
    auto variables = octet::parse_json(*f.chat_template_kwargs);
    if (!variables) return within("--chat-template-kwargs", std::move(variables).error());
    if (!variables->is_object()) return fail(ErrorCode::kInvalid, "--chat-template-kwargs: expected a JSON object");
    fields["chat_template_kwargs"] = *std::move(variables);
  }
  return fields;
}

Result<std::unique_ptr<octet::engine::Replica>> load(const RunFlags& f) {
  const ModelSource source{.revision = f.revision, .token = {}, .cache = {}};
  octet::engine::ReplicaOptions options;
  OCTET_TRY(const auto model, resolve_model_name(f.model, source));
  options.model = model.value_or(f.model);
  if (f.tokenizer) {
    OCTET_TRY(const auto tokenizer, resolve_tokenizer_name(*f.tokenizer, source));
    options.tokenizer = tokenizer.value_or(*f.tokenizer);
  }
  if (f.chat_template) {
    OCTET_TRY(options.chat_template, chat_template_source(*f.chat_template));
  }
  options.dtype = f.dtype;
  options.threads = static_cast<int>(f.threads.value_or(0));
  if (f.max_model_len) options.max_model_len = static_cast<std::int32_t>(*f.max_model_len);
  options.max_num_seqs = 1;
  options.max_num_batched_tokens = kStepTokens;
  options.progress = LoadingLine();
  return octet::engine::load_replica(options);
}

// What comes through a pipe or from a file; nothing from a terminal or a closed stream.
Result<std::optional<std::string>> piped_text() {
  struct stat about = {};
  if (::fstat(STDIN_FILENO, &about) != 0) return std::nullopt;
  if (!S_ISFIFO(about.st_mode) && !S_ISREG(about.st_mode) && !S_ISSOCK(about.st_mode)) return std::nullopt;
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, got);
    if (text.size() > kMaxPromptBytes) {
      return fail(ErrorCode::kInvalid, "standard input: more than {} bytes", kMaxPromptBytes);
    }
  }
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (!octet::is_valid_utf8(text)) return fail(ErrorCode::kInvalid, "standard input: this is no UTF-8");
  return text;
}

// Nothing: the chat is at the terminal.
Result<std::optional<std::string>> whole_prompt(const RunFlags& f) {
  OCTET_TRY(const std::optional<std::string> piped, piped_text());
  if (!f.prompt && !piped) {
    if (::isatty(STDIN_FILENO) == 1) return std::nullopt;
    return fail(ErrorCode::kInvalid, "nothing to answer: give PROMPT, a pipe, or a terminal");
  }
  std::string prompt = f.prompt.value_or("");
  if (piped && !piped->empty()) prompt += (prompt.empty() ? "" : "\n\n") + *piped;
  if (prompt.empty()) return fail(ErrorCode::kInvalid, "the prompt is empty");
  if (!octet::is_valid_utf8(prompt)) return fail(ErrorCode::kInvalid, "PROMPT: this is no UTF-8");
  return prompt;
}

fs::path history_file() {
  if (const auto state = octet::environment("XDG_STATE_HOME")) return fs::path(*state) / "octet" / "run_history";
  if (const auto home = octet::environment("HOME")) return fs::path(*home) / ".local/state/octet/run_history";
  return {};
}

Result<int> run(const RunFlags& flags) {
  OCTET_TRY(Json fields, request_fields(flags));
  OCTET_TRY(const std::optional<std::string> prompt, whole_prompt(flags));
  OCTET_TRY(auto replica, load(flags));
  octet::run::Chat chat(std::move(replica), std::move(fields));
  chat.set_system(flags.system.value_or(""));
  if (prompt) return octet::run::answer_once(chat, *prompt, flags.verbose);
  return octet::run::run_session(chat, {.verbose = flags.verbose, .history = history_file()});
}

}  // namespace

int run_command(int argc, char** argv) {
  RunFlags flags;
  octet::FlagTable table("octet run", "Chats with a model in the terminal.", chat_flags(flags));
  table.add(model_flags(flags));
  table.set_epilog(
      "examples\n"
      "  octet run smollm2                               a chat; /help lists its commands\n"
      "  octet run ORG/NAME 'Why is the sky blue?'       one answer\n"
      "  octet run smollm2 'Sum this up:' < notes.txt    about what comes through a pipe or from a file\n");
  if (const auto status = octet::parse_command(table, argc, argv)) return *status;
  if (auto level = octet::set_log_level(flags.log_level); !level) return 2;
  const auto status = run(flags);
  if (status) return *status;
  fmt::print(stderr, "octet run: {}\n", status.error().message);
  return status.error().code == ErrorCode::kCancelled ? 128 + octet::hub::stop_signal : 1;
}
