#include "octet/bench/prompt_text.h"

#include <fmt/format.h>

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

// At most kMostWords of the candidates, from all over the vocabulary.
std::vector<std::string> candidates_of(const text::Tokenizer& tokenizer) {
  std::vector<std::string> all;
  for (text::TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.is_special(id)) continue;
    std::string bytes = tokenizer.token_bytes(id);
    if (is_word(bytes)) all.push_back(std::move(bytes));
  }
  if (all.size() <= kMostWords) return all;
  std::vector<std::string> some;
  for (std::size_t i = 0; i < kMostWords; ++i) some.push_back(std::move(all[i * all.size() / kMostWords]));
  return some;
}

struct Words {
  std::vector<std::string> list;
  bool bare_first = false;
};

// Words that are one token wherever they stand. Some tokenizers put a space before every text, so that the first word
// of one must come without its own.
Words words_of(const text::Tokenizer& tokenizer) {
  const auto count = [&](std::string_view text) -> std::size_t {
    const auto ids = tokenizer.encode(text, {.add_special = false});
    return ids ? ids->size() : 0;
  };
  Words spaced, bare{.bare_first = true};
  for (const std::string& word : candidates_of(tokenizer)) {
    const std::string first = word.substr(1);
    if (count(word) == 1 && count(word + word) == 2) spaced.list.push_back(word);
    if (count(first) == 1 && count(first + word) == 2) bare.list.push_back(word);
  }
  return spaced.list.size() >= bare.list.size() ? std::move(spaced) : std::move(bare);
}

}  // namespace

PromptText::PromptText(const text::Tokenizer* tokenizer, std::uint64_t seed)
    : tokenizer_(tokenizer), seed_(seed), random_(seed) {
  if (tokenizer != nullptr) {
    Words words = words_of(*tokenizer);
    single_ = words.list.size() >= kFewestWords;
    words_ = std::move(words.list);
    bare_first_ = single_ && words.bare_first;
    const auto nothing = tokenizer->encode("", {.add_special = true});
    special_ = nothing ? static_cast<std::int64_t>(nothing->size()) : 0;
  }
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

std::string PromptText::begin(std::string text) const {
  if (bare_first_ && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string PromptText::note() const {
  if (tokenizer_ == nullptr)
    return "no tokenizer: a word of a made prompt counts as a token, and four bytes of any other text";
  if (missed_ == 0) return "";
  return fmt::format("the tokenizer has too few words of one token: {} made texts have a few more or less than asked",
                     missed_);
}

Result<std::string> PromptText::draw_from(std::mt19937_64& random, std::int64_t tokens) {
  if (tokenizer_ != nullptr && !single_) return draw_cut(random, tokens);
  std::string text;
  for (std::int64_t i = 0; i < tokens; ++i) text += words_[random() % words_.size()];
  if (tokenizer_ == nullptr) return text;
  OCTET_TRY(const std::int64_t is, count(begin(text)));
  missed_ += is == tokens ? 0 : 1;
  return text;
}

// Words of several tokens: draws more or fewer, and cuts.
Result<std::string> PromptText::draw_cut(std::mt19937_64& random, std::int64_t tokens) {
  std::vector<std::string_view> drawn;
  const auto add = [&](std::int64_t count) {
    for (; count > 0; --count) drawn.push_back(words_[random() % words_.size()]);
  };
  add(tokens);
  std::string text;
  for (int i = 0; i < kTries; ++i) {
    text.clear();
    for (const std::string_view word : drawn) text += word;
    OCTET_TRY(auto ids, tokenizer_->encode(text, {.add_special = false}));
    const auto is = static_cast<std::int64_t>(ids.size());
    if (is == tokens) return text;
    if (is < tokens) {
      add(tokens - is);
      continue;
    }
    // What the first of them spell is as long as it should be, unless it is read otherwise.
    ids.resize(static_cast<std::size_t>(tokens));
    text = tokenizer_->decode(ids, false);
    OCTET_TRY(const std::int64_t cut, count(text));
    if (cut == tokens) return text;
    drawn.resize(static_cast<std::size_t>(static_cast<std::int64_t>(drawn.size()) * tokens / is));
  }
  ++missed_;
  return text;  // as near as this tokenizer lets it come
}

}  // namespace octet::bench
