// The terminal of a chat: lines with editing and history, interrupts, text that cannot control it.
#pragma once
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace octet::run {

// SIGINT, SIGTERM and SIGHUP as something to ask for. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // the signals end the process again
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Was there one since the last call?
  bool take();
  int descriptor() const;  // readable while there is one to take
  int signal() const;      // SIGTERM or SIGHUP where one came: the program should end; else 0
};

class LineEditor {
 public:
  // screen: where prompts go, a terminal. history: the file of earlier lines; empty: none is kept.
  LineEditor(std::FILE* screen, Interrupts& interrupts, std::filesystem::path history);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class End { kLine, kInterrupt, kEnd };
  // A line without its end, added to the history. A backslash at its end continues it with the next line.
  End read(std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Without characters that steer a terminal (escape sequences among them); line ends and tabs stay. text: whole
// characters of UTF-8.
std::string without_controls(std::string_view text);

}  // namespace octet::run
