// Standard input and output of commands that are used in pipes.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "octet/base/error.h"
#include "octet/base/json.h"

// All of standard input, as it is. Errors: it cannot be read, or is longer than max_bytes.
octet::Result<std::string> read_input(std::size_t max_bytes);

// Calls answer(line) for each line of standard input and prints what it gives as a line, in order. Lines end with \n or
// \r\n; empty ones are skipped. Memory: the longest line. What is printed goes out at the latest when the next line has
// to be waited for, so that another program can ask line by line.
octet::Result<> answer_lines(std::size_t max_line_bytes, const std::function<std::string(std::string_view)>& answer);

// JSON on one line, also for readers that take U+0085, U+2028 and U+2029 for line ends: those are escaped.
std::string json_line(const octet::Json& value);

// Prints and flushes. Error: standard output is closed or full.
octet::Result<> print_output(std::string_view text);
