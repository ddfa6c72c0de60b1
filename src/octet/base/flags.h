// One table of flags makes the command line, --help, the documentation and the configuration file.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "octet/base/error.h"

namespace octet {

// How this build treats a flag that `vllm serve` knows.
enum class FlagClass {
  kBuilt,     // stored in its target
  kAccepted,  // no effect here; one note says why (the row's help is that reason)
  kLater,  // an error that names the feature (the row's help), unless the value is vLLM's default (the row's fallback)
};

// The shape of a flag that stores nothing (accepted, later).
enum class FlagShape { kSwitch, kValue, kList };

// Where a flag's value goes; its type decides how the flag is written. A bool is --x and --no-x, an integer may be
// written 1k (1,000), 1K (1,024) or 25.6k, a vector takes one or more values. The target's value before parsing is the
// default that --help shows.
using FlagTarget =
    std::variant<FlagShape, bool*, std::optional<bool>*, std::int64_t*, std::optional<std::int64_t>*, double*,
                 std::optional<double>*, std::string*, std::optional<std::string>*, std::vector<std::string>*>;

// One row. Texts are views of literals. Rows without a target fit a constexpr array.
struct Flag {
  std::string_view names;  // "--tensor-parallel-size -tp", the long name first; "MODEL" is a positional argument
  std::string_view group;  // heading in --help
  FlagTarget target;
  std::string_view help;  // one line; accepted: the reason; later: the feature, as in "LoRA adapters"
  FlagClass kind = FlagClass::kBuilt;
  std::string_view fallback = {};  // later: vLLM's default. Built: what --help says where the target holds none
  std::string_view choices = {};   // the allowed values, as in "auto,float32,bfloat16"; empty: any
  std::optional<double> min = {};  // numbers only, both ends included
  std::optional<double> max = {};
  bool required = false;  // positional arguments only
  // Text that is a JSON object: --flag.key.key=value gives one of its members, and all that is given is merged.
  bool json = false;
};

class FlagTable {
 public:
  // command: "octet serve"; summary: one line. Rows keep their order; groups appear by their first row. -h and --help
  // are added, and --help-all where the table has rows that are not built. A row named --config reads a YAML file of
  // flags, which the command line overrides.
  FlagTable(std::string command, std::string summary, std::span<const Flag> flags = {});

  // A name that the table already has is a programmer's error; add_missing() leaves such rows out.
  void add(std::span<const Flag> flags);
  void add_missing(std::span<const Flag> flags);
  // Text that ends --help, such as examples.
  void set_epilog(std::string text) { epilog_ = std::move(text); }

  // Stores what the arguments (without the command's own name) say into the targets. `_` equals `-` in names. An error
  // names the flag; that of an unknown flag names the nearest known one.
  Result<> parse(std::span<const std::string> arguments);

  // After parse(): was --help, --help-all or --help=WORD asked for; notes of accepted flags; was this flag given, there
  // or in the configuration file.
  bool wants_help() const { return wants_help_; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool given(std::string_view long_name) const;

  const std::string& command() const { return command_; }
  // The text of --help: the built flags, or all.
  std::string help(bool all) const;
  // Flags of any class whose name or text holds the word, in any case.
  std::string search(std::string_view word) const;
  // What was asked for: --help, --help-all (--help=all), --help=WORD, or --help=markdown for markdown().
  std::string help() const;
  // The same rows as a Markdown table per group, for docs.
  std::string markdown() const;

 private:
  struct Row {
    Flag flag;
    std::vector<std::string> names;  // as in the flag; the long one first
    std::string default_text;        // the target's value before parsing
    bool mentioned = false;          // on the command line
    bool given = false;              // there or in the configuration file
  };

  Row* find(std::string_view name);
  Result<bool> spell_member(std::span<const std::string> arguments, std::vector<std::string>& words);
  Result<> spell(std::string_view argument, std::vector<std::string>& words);
  std::string unknown(std::string_view name) const;
  Result<> store(Row& row, const std::vector<std::string>& values);
  Result<> read_config(const std::string& path);
  std::string row_help(const Row& row) const;
  std::string row_text(const Row& row) const;  // a line of --help, or two

  std::string command_, summary_, epilog_, wanted_word_;
  std::vector<Row> rows_;
  std::vector<std::string> notes_;
  bool wants_help_ = false, wants_all_ = false;
};

// What a command does with its table: parses argv (argv[0] is the command's own name), prints help or an error, calls
// start_log, logs the notes. A value is the exit status with which the command ends at once: 0 after help, 2 after an
// error.
std::optional<int> parse_command(FlagTable& table, int argc, char** argv,
                                 const std::function<Result<>()>& start_log = {});

// "2", "1k" (1,000), "1K" (1,024), "25.6k", m/M, g/G, t/T; an error where it is no such number, not whole, or beyond
// 2^63.
Result<std::int64_t> parse_size(std::string_view text);

}  // namespace octet
