// A chat at the terminal: what is typed, commands, replies.
#pragma once
#include <cstdio>
#include <filesystem>

#include "apps/octet/run_chat.h"
#include "apps/octet/run_terminal.h"

namespace octet::run {

struct SessionOptions {
  bool verbose = false;           // times and tokens after each reply, on standard error
  std::filesystem::path history;  // of typed lines; empty: none is kept
};

// Until /exit, Ctrl-D, or two Ctrl-C one after the other. Gives the exit status.
int run_session(Chat& chat, const SessionOptions& options);

// One reply on standard output, which ends with a line end. Gives the exit status: 1 after an error, 130 where Ctrl-C
// stopped it.
int answer_once(Chat& chat, const std::string& prompt, bool verbose);

}  // namespace octet::run
