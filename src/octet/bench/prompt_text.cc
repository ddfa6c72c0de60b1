#include "octet/bench/prompt_text.h"

#include <algorithm>
#include <string_view>

namespace octet::bench {
namespace {

constexpr std::size_t kMostWords = 4096, kFewestWords = 64;
constexpr int kTries = 12;
constexpr std::int64_t kBytesPerToken = 4;  // of English text, about
constexpr std::string_view kCommon[] = {
    " time",   " year",    " people",   " way",     " day",    " man",      " thing",  " woman",    " life",
    " child",  " world",   " school",   " state",   " family", " student",  " group",  " country",  " problem",
    " hand",   " part",    " place",    " case",    " week",   " company",  " system", " program",  " question",
    " work",   " number",  " night",    " point",   " home",   " water",    " room",   " mother",   " area",
    " money",  " story",   " fact",     " month",   " lot",    " right",    " study",  " book",     " eye",
    " job",    " word",    " business", " issue",   " side",   " kind",     " head",   " house",    " service",
    " friend", " father",  " power",    " hour",    " game",   " line",     " end",    " member",   " law",
    " car",    " city",    " name",     " team",    " minute", " idea",     " kid",    " body",     " information",
    " back",   " parent",  " face",     " level",   " office", " door",     " health", " person",   " art",
    " war",    " history", " party",    " result",  " change", " morning",  " reason", " research", " girl",
    " guy",    " moment",  " air",      " teacher", " force",  " education"};

bool is_word(std::string_view bytes) {
  return bytes.size() >= 4 && bytes.front() == ' ' &&
         std::ranges::all_of(bytes.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Words that are one token by themselves, from all over the vocabulary.
std::vector<std::string> words_of(const text::Tokenizer& tokenizer) {
  std::vector<std::string> words;
  for (text::TokenId id = 0; id < tokenizer.vocabulary_size() && words.size() < kMostWords; ++id) {
    if (tokenizer.is_special(id)) continue;
    std::string bytes = tokenizer.token_bytes(id);
    if (!is_word(bytes)) continue;
    const auto again = tokenizer.encode(bytes, {.add_special = false});
    if (again && again->size() == 1) words.push_back(std::move(bytes));
  }
  return words;
}

}  // namespace

PromptText::PromptText(const text::Tokenizer* tokenizer, std::uint64_t seed)
    : tokenizer_(tokenizer), seed_(seed), random_(seed) {
  if (tokenizer != nullptr) words_ = words_of(*tokenizer);
  if (words_.size() < kFewestWords) words_.assign(std::begin(kCommon), std::end(kCommon));
}

Result<std::int64_t> PromptText::count(std::string_view text) const {
  if (tokenizer_ == nullptr) return (static_cast<std::int64_t>(text.size()) + kBytesPerToken - 1) / kBytesPerToken;
  OCTET_TRY(const auto ids, tokenizer_->encode(text, {.add_special = false}));
  return static_cast<std::int64_t>(ids.size());
}

Result<std::string> PromptText::draw(std::int64_t tokens) { return draw_from(random_, tokens); }

Result<std::string> PromptText::draw_of(std::uint64_t key, std::int64_t tokens) {
  std::mt19937_64 random(seed_ ^ (key + 1) * 0x9e3779b97f4a7c15u);
  return draw_from(random, tokens);
}

Result<std::string> PromptText::draw_from(std::mt19937_64& random, std::int64_t tokens) const {
  std::vector<std::string_view> drawn;
  const auto add = [&](std::int64_t count) {
    for (; count > 0; --count) drawn.push_back(words_[random() % words_.size()]);
  };
  add(tokens);
  std::string text;
  for (int i = 0; i < kTries; ++i) {
    text.clear();
    for (const std::string_view word : drawn) text += word;
    if (tokenizer_ == nullptr) return text;
    OCTET_TRY(auto ids, tokenizer_->encode(text, {.add_special = false}));
    const auto is = static_cast<std::int64_t>(ids.size());
    if (is == tokens) return text;
    if (is < tokens) {
      add(tokens - is);
      continue;
    }
    // Words of several tokens: what the first of them spell is as long as it should be, unless it is read otherwise.
    ids.resize(static_cast<std::size_t>(tokens));
    text = tokenizer_->decode(ids, false);
    OCTET_TRY(const std::int64_t cut, count(text));
    if (cut == tokens) return text;
    drawn.resize(static_cast<std::size_t>(static_cast<std::int64_t>(drawn.size()) * tokens / is));
  }
  return text;  // as near as this tokenizer lets it come
}

}  // namespace octet::bench
