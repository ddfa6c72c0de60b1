// `octet tokenize`: text to token ids, and back.
#include <charconv>
#include <cstdio>

#include "apps/octet/commands.h"
#include "apps/octet/line_io.h"
#include "octet/base/flags.h"
#include "octet/base/json.h"
#include "octet/base/utf8.h"
#include "octet/text/tokenizer.h"

namespace {

using octet::ErrorCode;
using octet::fail;
using octet::Json;
using octet::Result;
using octet::text::TokenId;
using octet::text::Tokenizer;

constexpr std::size_t kMaxInput = std::size_t{1} << 30;
constexpr std::size_t kMaxIds = 100'000'000;
constexpr octet::JsonLimits kJsonLimits{.max_bytes = kMaxInput, .max_depth = 4, .max_values = kMaxIds};

struct TokenizeFlags {
  std::optional<std::string> tokenizer;
  bool special = true, plain = false, json = false, ids = false, jsonl = false;
};

octet::FlagTable flag_table(TokenizeFlags& f) {
  const octet::Flag flags[] = {
      {.names = "--tokenizer",
       .group = "tokenizer",
       .target = &f.tokenizer,
       .help = "a tokenizer.json, a GGUF file, a SentencePiece, tiktoken or tekken file, or a folder with one of them",
       .fallback = "none: it must be given"},
      {.names = "--special",
       .group = "tokenizer",
       .target = &f.special,
       .help = "add BOS, EOS and so on as the tokenizer says; with --ids: show special tokens"},
      {.names = "--plain",
       .group = "tokenizer",
       .target = &f.plain,
       .help = "special tokens spelled in the text are plain text, as in a client's message to octet serve"},
      {.names = "--ids",
       .group = "input and output",
       .target = &f.ids,
       .help = "the other way: ids in (separated by spaces, commas or lines, or a JSON list), text out"},
      {.names = "--json", .group = "input and output", .target = &f.json, .help = "print one JSON object"},
      {.names = "--jsonl",
       .group = "input and output",
       .target = &f.jsonl,
       .help = "one JSON string (or list of ids) a line in, one JSON object a line out"},
  };
  return {"octet tokenize", "Turns text into token ids, and ids into text.", flags};
}

constexpr const char* kEpilog =
    R"text(Text is read from standard input as it is, a line end at its end included. Printed is a line per token: its id, its
piece as the vocabulary spells it (a JSON string), its bytes in hexadecimal.
  --json          {"ids": [...], "tokens": [pieces], "bytes": [lists of byte values]}
  --jsonl         {"ids": [...], "tokens": [pieces]} for a string, {"text": ...} for a list of ids, or {"error": ...}
  --ids           the text alone, without a line end of its own; with --json: {"text": ...}

examples
  printf 'Hello world' | octet tokenize --tokenizer model.gguf
  echo 9906 1917 | octet tokenize --tokenizer tokenizer.json --ids
  octet tokenize --tokenizer DIR --no-special --jsonl < texts.jsonl > ids.jsonl
)text";

Result<TokenId> token_id(const Json& value) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<TokenId>::max()) {
    return static_cast<TokenId>(value.get<std::uint64_t>());
  }
  return fail(ErrorCode::kInvalid, "{} is no token id", octet::dump_json(value).substr(0, 64));
}

Result<std::vector<TokenId>> ids_of(const Json& list) {
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (const Json& item : list) {
    OCTET_TRY(const TokenId id, token_id(item));
    ids.push_back(id);
  }
  return ids;
}

// "[1, 2]", "1 2", "1,2" or a number a line.
Result<std::vector<TokenId>> read_ids(std::string_view text) {
  std::vector<TokenId> ids;
  constexpr std::string_view kBetween = " \t\r\n,";
  const std::size_t begin = text.find_first_not_of(kBetween);
  if (begin != std::string_view::npos && text[begin] == '[') {
    OCTET_TRY(const Json list, octet::parse_json(text, kJsonLimits));
    return ids_of(list);
  }
  for (std::size_t at = begin; at < text.size(); at = text.find_first_not_of(kBetween, at)) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    TokenId id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end || id < 0) {
      return fail(ErrorCode::kInvalid, "\"{}\" is no token id",
                  octet::repair_utf8(text.substr(at, std::min<std::size_t>(end - at, 64))));
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

class Command {
 public:
  Command(const TokenizeFlags& flags, const Tokenizer& tokenizer) : flags_(flags), tokenizer_(tokenizer) {}

  Result<> run() const;

 private:
  std::string answer(std::string_view line) const;
  Result<Json> answer_value(const Json& value) const;
  Result<std::vector<TokenId>> encode(std::string_view text) const {
    return tokenizer_.encode(text, {.add_special = flags_.special, .parse_special = !flags_.plain});
  }
  Json tokens(const std::vector<TokenId>& ids) const;
  std::string table(const std::vector<TokenId>& ids) const;

  const TokenizeFlags& flags_;
  const Tokenizer& tokenizer_;
};

Json Command::tokens(const std::vector<TokenId>& ids) const {
  Json list = Json::array();
  for (const TokenId id : ids) list.push_back(tokenizer_.token(id).value_or(""));
  return {{"ids", ids}, {"tokens", std::move(list)}};
}

std::string Command::table(const std::vector<TokenId>& ids) const {
  std::string out;
  for (const TokenId id : ids) {
    out += fmt::format("{:>7}  {}  ", id, octet::dump_json(tokenizer_.token(id).value_or("")));
    for (const char byte : tokenizer_.token_bytes(id)) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    out += '\n';
  }
  return out;
}

Result<Json> Command::answer_value(const Json& value) const {
  if (value.is_array()) {
    OCTET_TRY(const std::vector<TokenId> ids, ids_of(value));
    return Json{{"text", tokenizer_.decode(ids, !flags_.special)}};
  }
  if (flags_.ids || !value.is_string()) {
    return fail(ErrorCode::kInvalid, "expected {}a list of token ids", flags_.ids ? "" : "a JSON string or ");
  }
  OCTET_TRY(const std::vector<TokenId> ids, encode(value.get_ref<const std::string&>()));
  return tokens(ids);
}

std::string Command::answer(std::string_view line) const {
  const auto value = octet::parse_json(line, kJsonLimits);
  const auto answer = value ? answer_value(*value) : std::unexpected(value.error());
  return json_line(answer ? *answer : Json{{"error", answer.error().message}});
}

Result<> Command::run() const {
  if (flags_.jsonl) {
    return answer_lines(kMaxInput, [this](std::string_view line) { return answer(line); });
  }
  OCTET_TRY(const std::string input, read_input(kMaxInput));
  if (flags_.ids) {
    OCTET_TRY(const std::vector<TokenId> ids, read_ids(input));
    const std::string text = tokenizer_.decode(ids, !flags_.special);
    return print_output(flags_.json ? json_line({{"text", text}}) + "\n" : text);
  }
  OCTET_TRY(const std::vector<TokenId> ids, encode(input));
  if (!flags_.json) return print_output(table(ids));
  Json out = tokens(ids);
  Json bytes = Json::array();
  for (const TokenId id : ids) {
    Json one = Json::array();
    for (const char byte : tokenizer_.token_bytes(id)) one.push_back(static_cast<unsigned char>(byte));
    bytes.push_back(std::move(one));
  }
  out["bytes"] = std::move(bytes);
  return print_output(json_line(out) + "\n");
}

}  // namespace

int tokenize_command(int argc, char** argv) {
  TokenizeFlags flags;
  octet::FlagTable table = flag_table(flags);
  table.set_epilog(kEpilog);
  if (const auto status = octet::parse_command(table, argc, argv)) return *status;
  if (!flags.tokenizer) {
    fmt::print(stderr, "octet tokenize: --tokenizer is missing; octet tokenize --help tells more\n");
    return 2;
  }
  const auto fail_with = [](const octet::Error& error) {
    fmt::print(stderr, "octet tokenize: {}\n", error.message);
    return 1;
  };
  const auto tokenizer = Tokenizer::open(*flags.tokenizer);
  if (!tokenizer) return fail_with(within("--tokenizer", tokenizer.error()).error());
  const auto done = Command(flags, **tokenizer).run();
  return done ? 0 : fail_with(done.error());
}
