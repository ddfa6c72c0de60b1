// Reads one answer as it comes in: pure, fed with (time, bytes).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/json.h"
#include "octet/bench/record.h"
#include "octet/text/tokenizer.h"

namespace octet::bench {

enum class Api : std::uint8_t { kCompletions, kChat };

// What an answer is made of: server-sent events, or one JSON object.
//
// A chunk with text, reasoning or a part of a tool call brings tokens: as many as its token ids, its log-probabilities
// or the growth of its usage say, else one. What usage says at the end counts; it is shared out over the arrivals in
// proportion. An answer without a finish, [DONE] or a whole JSON object has failed, whatever its status.
class AnswerReader {
 public:
  // tokenizer: counts tokens where the server sends no usage; null: chunks are counted.
  AnswerReader(Api api, bool streamed, const text::Tokenizer* tokenizer = nullptr);

  void status(int status) { status_ = status; }
  // Bytes of the body, at a time that does not go back.
  void bytes(std::int64_t ns, std::string_view bytes);
  // The body's end, and what came of it: everything of the record but what was known when it was sent.
  void finish(std::int64_t ns, RequestRecord& record);
  // It ended otherwise: broke off, or was cut. `error` empty: cut.
  void fail(std::int64_t ns, std::string error, RequestRecord& record);

  std::int64_t tokens_so_far() const { return weight_; }
  bool has_first_token() const { return !arrivals_.empty(); }
  std::string take_text() { return std::move(text_); }  // the answer without reasoning

 private:
  void line(std::int64_t ns, std::string_view line);
  void event(std::int64_t ns, std::string_view data);
  void chunk(std::int64_t ns, const Json& json);
  void choice(std::int64_t ns, const Json& choice, std::int64_t counted);
  void usage(const Json& usage);
  void whole(const Json& json);
  void arrive(std::int64_t ns, std::int64_t tokens);
  void broken(std::string error);
  void close(std::int64_t ns, RequestRecord& record);
  std::int64_t total_tokens(TokenSource& source) const;

  Api api_;
  bool streamed_;
  const text::Tokenizer* tokenizer_;
  int status_ = 0;
  std::string buffer_;  // an unfinished line; of a whole answer, all of it
  std::string data_;    // of the event that is being read
  bool has_data_ = false, done_ = false, finished_ = false;
  std::string error_;
  std::vector<Arrival> arrivals_;
  std::int64_t weight_ = 0;  // sum of the arrivals' tokens
  std::int64_t first_answer_ns_ = -1;
  std::string text_, reasoning_;
  std::optional<std::int64_t> prompt_tokens_, completion_tokens_, cached_tokens_;
};

// What a body that is no answer says of its error, in one line of at most 300 bytes.
std::string error_text(std::string_view body);

}  // namespace octet::bench
