#include "apps/octet/run_session.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace octet::run {
namespace {

constexpr std::string_view kHelp =
    "  /reset        forget the conversation; the system prompt stays\n"
    "  /system TEXT  set the system prompt; without TEXT show it, - takes it away\n"
    "  /save FILE    write the conversation: as a request's JSON where FILE ends with .json, else as text\n"
    "  /verbose      times and tokens after each reply, on or off\n"
    "  /help         this list\n"
    "  /exit         end; so does Ctrl-D\n"
    "Ctrl-C stops a reply; twice at the prompt it ends the chat. A backslash at the end of a line continues it.\n"
    "A message that begins with / is written with two: //\n";

// Shows pieces of a reply on standard output. On a terminal they cannot steer it.
class ReplyWriter {
 public:
  void operator()(std::string_view piece) {
    const std::string text = terminal_ ? without_controls(piece) : std::string(piece);
    if (text.empty()) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    ended_ = text.back() == '\n';
  }
  void finish() {
    if (!ended_) std::fputs("\n", stdout);
    std::fflush(stdout);
  }

 private:
  const bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  bool ended_ = false;
};

void print_report(const ReplyReport& report) {
  const std::string rate =
      report.tokens_per_second > 0 ? fmt::format("{:.1f} tokens/s, ", report.tokens_per_second) : std::string();
  fmt::print(stderr, "[TTFT {:.2f} s, {}{} tokens; prompt {} tokens, {} of them cached]\n", report.first_token_seconds,
             rate, report.completion_tokens, report.prompt_tokens, report.cached_tokens);
}

Result<ReplyReport> reply_to(Chat& chat, const std::string& text, Interrupts& interrupts, bool verbose) {
  ReplyWriter writer;
  interrupts.take();  // one from before belongs to nothing
  auto report = chat.ask(text, [&](std::string_view piece) { writer(piece); }, [&] { return interrupts.take(); });
  if (!report) return report;
  writer.finish();
  if (verbose) print_report(*report);
  return report;
}

Result<> save(const Chat& chat, const std::string& file) {
  const Json messages = chat.messages();
  std::ofstream out(file);
  if (file.ends_with(".json")) {
    Json request;
    request["messages"] = messages;
    out << request.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    for (const Json& message : messages) {
      out << message["role"].get<std::string>() << ":\n" << message["content"].get<std::string>() << "\n\n";
    }
  }
  if (!out.flush()) return fail(ErrorCode::kIo, "{}: it could not be written", file);
  return {};
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\n") + 1 - first));
}

class Session {
 public:
  Session(Chat& chat, const SessionOptions& options)
      : chat_(chat),
        verbose_(options.verbose),
        screen_(::isatty(STDOUT_FILENO) == 1 ? stdout : stderr),
        editor_(screen_, interrupts_, options.history) {}

  int run() {
    fmt::print(screen_, "{}\n",
               chat_.has_template() ? "/help lists the commands"
                                    : "this model has no chat template: it continues each text by itself");
    std::string line;
    while (!ended_) {
      std::fflush(screen_);
      const auto end = editor_.read(line);
      if (end == LineEditor::End::kEnd) break;
      if (end == LineEditor::End::kInterrupt) {
        if (interrupted_ || interrupts_.signal() != 0) break;
        interrupted_ = true;
        fmt::print(screen_, "Ctrl-C once more ends the chat\n");
        continue;
      }
      interrupted_ = false;
      take(line);
      ended_ = ended_ || interrupts_.signal() != 0;
    }
    return interrupts_.signal() == 0 ? 0 : 128 + interrupts_.signal();
  }

 private:
  void take(const std::string& line) {
    const std::string text = trimmed(line);
    if (text.empty()) return;
    if (text.starts_with('/') && !text.starts_with("//")) {
      command(text);
      return;
    }
    const auto report = reply_to(chat_, text.starts_with("//") ? text.substr(1) : text, interrupts_, verbose_);
    if (!report) {
      fmt::print(stderr, "octet run: {}\n", report.error().message);
      return;
    }
    interrupted_ = report->finish == engine::FinishReason::kAbort;
    if (report->finish == engine::FinishReason::kLength) {
      fmt::print(stderr, "[cut after {} tokens: --max-tokens, or the end of the context]\n", report->completion_tokens);
    }
  }

  void command(const std::string& text) {
    const std::size_t space = std::min(text.find_first_of(" \t\n"), text.size());
    const std::string name = text.substr(1, space - 1), argument = trimmed(text.substr(space));
    if (name == "help" || name == "?") {
      fmt::print(screen_, "{}", kHelp);
    } else if (name == "exit" || name == "quit" || name == "bye") {
      ended_ = true;
    } else if (name == "reset" || name == "clear") {
      chat_.reset();
      fmt::print(screen_, "the conversation begins anew\n");
    } else if (name == "system") {
      if (!argument.empty()) chat_.set_system(argument == "-" ? "" : argument);
      fmt::print(screen_, "system prompt: {}\n", chat_.system().empty() ? "none" : without_controls(chat_.system()));
    } else if (name == "verbose") {
      verbose_ = !verbose_;
      fmt::print(screen_, "verbose: {}\n", verbose_ ? "on" : "off");
    } else if (name == "save") {
      save_to(argument);
    } else {
      fmt::print(screen_, "/{}: no such command; /help lists them\n", without_controls(name));
    }
  }

  void save_to(const std::string& file) {
    if (file.empty()) {
      fmt::print(screen_, "/save FILE: the file is missing\n");
      return;
    }
    const auto saved = save(chat_, file);
    fmt::print(screen_, "{}\n", saved ? fmt::format("saved to {}", file) : saved.error().message);
  }

  Chat& chat_;
  bool verbose_, ended_ = false;
  bool interrupted_ = false;  // the last thing that happened was Ctrl-C
  std::FILE* screen_;
  Interrupts interrupts_;
  LineEditor editor_;
};

}  // namespace

int run_session(Chat& chat, const SessionOptions& options) {
  Session session(chat, options);
  return session.run();
}

int answer_once(Chat& chat, const std::string& prompt, bool verbose) {
  Interrupts interrupts;
  const auto report = reply_to(chat, prompt, interrupts, verbose);
  if (!report) {
    fmt::print(stderr, "octet run: {}\n", report.error().message);
    return 1;
  }
  if (report->finish == engine::FinishReason::kAbort) {
    return 128 + (interrupts.signal() == 0 ? SIGINT : interrupts.signal());
  }
  return std::ferror(stdout) == 0 ? 0 : 1;
}

}  // namespace octet::run
