#include "octet/text/tokenizer/unigram.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "octet/text/tokenizer/split_pieces.h"

namespace octet::text {
namespace {

constexpr double kUnknownPenalty = 10;

std::vector<std::pair<std::string_view, std::int32_t>> strings_in_text(const UnigramConfig& config) {
  std::vector<std::pair<std::string_view, std::int32_t>> strings;
  strings.reserve(config.pieces.size());
  for (std::size_t id = 0; id < config.pieces.size(); ++id) {
    const UnigramPiece& piece = config.pieces[id];
    if (piece.in_text) strings.emplace_back(piece.text, static_cast<std::int32_t>(id));
  }
  return strings;
}

// Words of a text come again: where the ids of the last ones are. One slot for each hash.
class RecentWords {
 public:
  struct Word {
    std::string_view text;
    std::size_t begin = 0, end = 0;  // among the ids of this call
  };
  explicit RecentWords(std::size_t words) : slots_(std::bit_ceil(std::clamp<std::size_t>(words, 1, kMaxSlots))) {}
  Word& slot_of(std::string_view text) { return slots_[std::hash<std::string_view>()(text) & (slots_.size() - 1)]; }

 private:
  static constexpr std::size_t kMaxSlots = 8192;
  std::vector<Word> slots_;
};

// The byte that <0xNN> names, spelled as the fallback looks it up: two upper-case digits. Or -1.
int byte_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const std::size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
  return high == std::string_view::npos || low == std::string_view::npos ? -1 : static_cast<int>(high << 4 | low);
}

}  // namespace

// The best way to the place in the text that it belongs to.
template <typename Score>
struct Unigram::Step {
  Score score = 0;
  TokenId id = -1;  // of the last token; -1: no way
  std::size_t begin = 0;
};

Unigram::Unigram(const UnigramConfig& config)
    : trie_(strings_in_text(config)), unknown_(config.unknown), single_precision_(config.single_precision) {
  byte_ids_.fill(-1);
  double lowest = 0;
  scores_.reserve(config.pieces.size());
  for (const UnigramPiece& piece : config.pieces) {
    const int byte = config.byte_fallback ? byte_of(piece.text) : -1;
    if (byte >= 0) byte_ids_[static_cast<std::size_t>(byte)] = static_cast<TokenId>(scores_.size());
    lowest = scores_.empty() ? piece.score : std::min(lowest, piece.score);
    scores_.push_back(piece.score);
  }
  unknown_score_ = config.unknown_score.value_or(lowest - kUnknownPenalty);
}

Result<std::unique_ptr<Unigram>> Unigram::make(const UnigramConfig& config) {
  if (config.pieces.empty()) return fail(ErrorCode::kInvalid, "the vocabulary is empty");
  if (config.unknown && (*config.unknown < 0 || static_cast<std::size_t>(*config.unknown) >= config.pieces.size())) {
    return fail(ErrorCode::kInvalid, "the unknown id {} is not one of the {} tokens", *config.unknown,
                config.pieces.size());
  }
  return std::unique_ptr<Unigram>(new Unigram(config));
}

Result<> Unigram::encode(const Pieces& pieces, std::vector<TokenId>& ids) const {
  if (!pieces.is_bytes) return single_precision_ ? encode_all<float>(pieces, ids) : encode_all<double>(pieces, ids);
  Pieces spelled = pieces;
  spell_pieces(spelled);
  return encode(spelled, ids);
}

template <typename Score>
Result<> Unigram::encode_all(const Pieces& pieces, std::vector<TokenId>& ids) const {
  std::vector<Step<Score>> steps;
  RecentWords recent(pieces.ranges.size());
  for (const Pieces::Range range : pieces.ranges) {
    const std::string_view text = pieces.view(range);
    RecentWords::Word& word = recent.slot_of(text);
    if (word.text == text) {
      for (std::size_t i = word.begin; i < word.end; ++i) ids.push_back(ids[i]);
      continue;
    }
    const std::size_t begin = ids.size();
    OCTET_TRY_VOID(find_path(text, steps));
    follow_path(text, steps, ids);
    word = {text, begin, ids.size()};
  }
  return {};
}

template <typename Score>
Result<> Unigram::find_path(std::string_view text, std::vector<Step<Score>>& steps) const {
  steps.assign(text.size() + 1, {});
  for (std::size_t begin = 0; begin < text.size();) {
    const Score before = steps[begin].score;
    const std::size_t character = begin + code_point_at(text, begin).length;
    bool character_is_token = false;
    ByteTrie::Node node = ByteTrie::kRoot;
    for (std::size_t end = begin; end < text.size();) {
      node = trie_.step(node, static_cast<std::uint8_t>(text[end]));
      if (node == ByteTrie::kNone) break;
      ++end;
      const TokenId id = trie_.value(node);
      if (id < 0) continue;
      character_is_token |= end == character;
      Step<Score>& step = steps[end];
      const Score score = static_cast<Score>(scores_[static_cast<std::size_t>(id)] + before);
      if (step.id < 0 || score > step.score) step = {score, id, begin};
    }
    if (!character_is_token) {
      if (!unknown_) {
        return fail(ErrorCode::kInvalid, "no token for \"{}\", and the model has none for unknown characters",
                    text.substr(begin, character - begin));
      }
      Step<Score>& step = steps[character];
      const Score score = static_cast<Score>(unknown_score_) + before;
      if (step.id < 0 || score > step.score) step = {score, *unknown_, begin};
    }
    begin = character;
  }
  return {};
}

template <typename Score>
void Unigram::follow_path(std::string_view text, const std::vector<Step<Score>>& steps,
                          std::vector<TokenId>& ids) const {
  const auto first = static_cast<std::ptrdiff_t>(ids.size());
  std::size_t run_end = text.size();  // of unknown characters
  for (std::size_t end = text.size(); end > 0;) {
    const Step<Score>& step = steps[end];
    if (step.id != unknown_) {
      if (end < run_end) add_unknown(text.substr(end, run_end - end), ids);
      ids.push_back(step.id);
      run_end = step.begin;
    }
    end = step.begin;
  }
  if (run_end > 0) add_unknown(text.substr(0, run_end), ids);
  std::reverse(ids.begin() + first, ids.end());
}

void Unigram::add_unknown(std::string_view run, std::vector<TokenId>& reversed) const {
  ByteTrie::Node node = ByteTrie::kRoot;
  for (std::size_t i = 0; i < run.size() && node != ByteTrie::kNone; ++i) {
    node = trie_.step(node, static_cast<std::uint8_t>(run[i]));
  }
  // Characters that are unknown one by one may be a token together.
  if (node != ByteTrie::kNone && trie_.value(node) >= 0) {
    reversed.push_back(trie_.value(node));
    return;
  }
  const auto id_of = [&](char byte) { return byte_ids_[static_cast<std::uint8_t>(byte)]; };
  if (!std::ranges::all_of(run, [&](char byte) { return id_of(byte) >= 0; })) {
    reversed.push_back(*unknown_);
    return;
  }
  for (auto byte = run.rbegin(); byte != run.rend(); ++byte) reversed.push_back(id_of(*byte));
}

}  // namespace octet::text
