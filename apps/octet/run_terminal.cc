#include "apps/octet/run_terminal.h"

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <cstdint>
#include <cstring>
#include <cwchar>

#include "octet/base/check.h"

namespace octet::run {
namespace {

constexpr int kHistoryLines = 1000;
constexpr std::array kInterruptSignals = {SIGINT, SIGTERM, SIGHUP};
// After these the terminal may have another size, or the modes that the shell left.
constexpr std::array kTerminalSignals = {SIGCONT, SIGWINCH};

// For the handlers. Signals may come on any thread, so each wakes the waiting one through a descriptor.
int interrupt_event = -1, terminal_event = -1;
std::atomic<int> end_signal = 0;

void notify(int event) {
  const int kept = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(event, &one, sizeof one);
  errno = kept;
}

bool take_event(int event) {
  std::uint64_t count = 0;
  return ::read(event, &count, sizeof count) == sizeof count;
}

int make_event() {
  const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  OCTET_CHECK(event >= 0);
  return event;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

void on_interrupt(int signal) {
  if (signal != SIGINT) end_signal = signal;
  notify(interrupt_event);
}

// The editor counts columns by the locale's characters.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

Interrupts::Interrupts() {
  OCTET_CHECK(interrupt_event < 0);
  interrupt_event = make_event();
  for (const int signal : kInterruptSignals) handle(signal, on_interrupt);
}

Interrupts::~Interrupts() {
  for (const int signal : kInterruptSignals) ::signal(signal, SIG_DFL);
  ::close(interrupt_event);
  interrupt_event = -1;
}

bool Interrupts::take() { return take_event(interrupt_event); }
int Interrupts::descriptor() const { return interrupt_event; }
int Interrupts::signal() const { return end_signal; }

struct LineEditor::State {
  State(std::FILE* the_screen, Interrupts& the_interrupts, std::filesystem::path file)
      : interrupts(the_interrupts), screen(the_screen), history_file(std::move(file)) {}

  // One character of the terminal: 1, 0 at its end, -1 after an interrupt.
  int read_character(wchar_t* character);
  void restore_terminal();
  static int on_read(EditLine* editor, wchar_t* character) {
    State* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return state->read_character(character);
  }
  static char* prompt(EditLine* editor) {
    State* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    static char first[] = ">>> ", more[] = "... ";
    return state->continued ? more : first;
  }

  Interrupts& interrupts;
  std::FILE* screen;
  std::filesystem::path history_file;
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event = {};
  bool continued = false, interrupted = false;
};

void LineEditor::State::restore_terminal() {
  take_event(terminal_event);
  el_set(editor, EL_PREP_TERM, 0);
  el_set(editor, EL_PREP_TERM, 1);
  el_resize(editor);
  el_set(editor, EL_REFRESH);
}

int LineEditor::State::read_character(wchar_t* character) {
  std::mbstate_t shift{};
  for (;;) {
    pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {interrupts.descriptor(), POLLIN, 0}, {terminal_event, POLLIN, 0}};
    if (::poll(waits, 3, -1) < 0) continue;
    if (waits[2].revents != 0) restore_terminal();
    if (waits[0].revents == 0 && waits[1].revents == 0) continue;
    if (waits[1].revents != 0) {
      interrupted = true;
      return -1;
    }
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return 0;
    const std::size_t used = std::mbrtowc(character, &byte, 1, &shift);
    if (used == static_cast<std::size_t>(-2)) continue;  // more bytes to come
    if (used == static_cast<std::size_t>(-1)) {
      shift = {};
      continue;  // no character
    }
    if (used == 0) *character = L'\0';
    return 1;
  }
}

LineEditor::LineEditor(std::FILE* screen, Interrupts& interrupts, std::filesystem::path history)
    : state_(std::make_unique<State>(screen, interrupts, std::move(history))) {
  use_utf8();
  State& state = *state_;
  terminal_event = make_event();
  for (const int signal : kTerminalSignals) handle(signal, [](int) { notify(terminal_event); });
  state.editor = el_init("octet", stdin, screen, stderr);
  OCTET_CHECK(state.editor != nullptr);
  el_set(state.editor, EL_CLIENTDATA, &state);
  el_set(state.editor, EL_GETCFN, State::on_read);
  el_set(state.editor, EL_PROMPT, State::prompt);
  el_set(state.editor, EL_EDITOR, "emacs");
  state.history = history_init();
  OCTET_CHECK(state.history != nullptr);
  ::history(state.history, &state.event, H_SETSIZE, kHistoryLines);
  ::history(state.history, &state.event, H_SETUNIQUE, 1);
  el_set(state.editor, EL_HIST, ::history, state.history);
  if (!state.history_file.empty()) ::history(state.history, &state.event, H_LOAD, state.history_file.c_str());
  el_source(state.editor, nullptr);  // ~/.editrc
}

LineEditor::~LineEditor() {
  State& state = *state_;
  if (!state.history_file.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(state.history_file.parent_path(), ignored);
    const mode_t mask = ::umask(077);  // prompts are private
    ::history(state.history, &state.event, H_SAVE, state.history_file.c_str());
    ::umask(mask);
  }
  history_end(state.history);
  el_end(state.editor);
  for (const int signal : kTerminalSignals) ::signal(signal, SIG_DFL);
  ::close(terminal_event);
  terminal_event = -1;
}

LineEditor::End LineEditor::read(std::string& line) {
  State& state = *state_;
  line.clear();
  state.continued = state.interrupted = false;
  el_resize(state.editor);
  for (;;) {
    int count = 0;
    const char* text = el_gets(state.editor, &count);
    if (text == nullptr || count <= 0) {
      el_reset(state.editor);
      std::fputs("\n", state.screen);
      if (!state.interrupted) return End::kEnd;
      state.interrupts.take();
      return End::kInterrupt;
    }
    line += text;
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    if (!line.ends_with('\\')) break;
    line.back() = '\n';
    state.continued = true;
  }
  std::string remembered = line;
  for (char& c : remembered) c = c == '\n' ? ' ' : c;
  if (remembered.find_first_not_of(' ') != remembered.npos) {
    ::history(state.history, &state.event, H_ENTER, remembered.c_str());
  }
  return End::kLine;
}

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) continue;
    // U+0080 to U+009F are controls of eight bits.
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) {
      ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

}  // namespace octet::run
