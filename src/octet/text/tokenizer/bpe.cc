#include "octet/text/tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>

#include "octet/text/tokenizer/byte_alphabet.h"
#include "octet/text/unicode.h"

namespace octet::text {
namespace {

constexpr std::size_t kShortWord = 128;  // symbols; a scan over so few beats a queue

}  // namespace

MergeTable::MergeTable(std::size_t merges) {
  const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(16, merges + merges / 2));
  slots_.assign(capacity, kEmpty);
  mask_ = capacity - 1;
  shift_ = 64 - std::countr_zero(capacity);
}

void MergeTable::set(TokenId left, TokenId right, std::uint32_t rank) {
  const std::uint64_t pair = pair_of(left, right);
  std::size_t at = slot_of(pair);
  while (slots_[at] != kEmpty && slots_[at] >> kRankBits != pair) at = (at + 1) & mask_;
  slots_[at] = pair << kRankBits | rank;
}

// Working space of one call, reused from piece to piece.
struct Bpe::Scratch {
  struct Candidate {
    std::uint32_t rank = 0;
    std::uint32_t position = 0;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };

  std::vector<TokenId> symbols;
  std::vector<std::uint32_t> ranks;  // of the merge of symbol i and the one behind it
  std::vector<std::uint32_t> previous, next;
  std::vector<Candidate> heap;
};

Bpe::Bpe(const BpeConfig& config)
    : words_(config.vocabulary.size()),
      byte_words_(config.vocabulary.size()),
      merges_(config.merges.size()),
      fuse_unknown_(config.fuse_unknown),
      byte_fallback_(config.byte_fallback),
      ignore_merges_(config.ignore_merges) {
  for (const auto& [token, id] : config.vocabulary) {
    words_.set(token, id);
    if (const auto bytes = unspell_bytes(token)) {
      byte_words_.set(*bytes, id);
      pairs_.add_token(*bytes);
    }
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char raw = static_cast<char>(byte);
    byte_ids_[byte] = byte_words_.id_of({&raw, 1}).value_or(-1);
    fallback_ids_[byte] = words_.id_of(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
}

Result<std::unique_ptr<Bpe>> Bpe::make(const BpeConfig& config) {
  for (const auto& [token, id] : config.vocabulary) {
    if (id < 0 || id > MergeTable::kMaxId) {
      return fail(ErrorCode::kUnsupported, "token \"{}\" has id {}, more than {}", token.substr(0, 100), id,
                  MergeTable::kMaxId);
    }
  }
  if (config.merges.size() > MergeTable::kMaxMerges) {
    return fail(ErrorCode::kUnsupported, "{} merges, more than {}", config.merges.size(), MergeTable::kMaxMerges);
  }
  std::unique_ptr<Bpe> made(new Bpe(config));
  if (config.unknown) {
    made->unknown_ = made->words_.id_of(*config.unknown);
    if (!made->unknown_) {
      return fail(ErrorCode::kInvalid, "unk_token \"{}\" is not in the vocabulary", *config.unknown);
    }
  }
  OCTET_TRY_VOID(made->add_merges(config));
  made->tabulate_bytes();
  return made;
}

Result<> Bpe::add_merges(const BpeConfig& config) {
  std::uint32_t rank = 0;
  std::string joined;
  merged_.resize(config.merges.size(), -1);
  for (const auto& [left, right] : config.merges) {
    joined.assign(left).append(right);
    const auto a = words_.id_of(left), b = words_.id_of(right), both = words_.id_of(joined);
    if (a && b && both) {
      merges_.set(*a, *b, rank);
      merged_[rank] = *both;
    } else if (!config.skip_unknown_merges) {
      const std::string& missing = !a ? left : !b ? right : joined;
      return fail(ErrorCode::kInvalid, "merge {} (\"{}\" and \"{}\"): token \"{}\" is not in the vocabulary", rank,
                  left.substr(0, 100), right.substr(0, 100), missing.substr(0, 200));
    }
    ++rank;
  }
  return {};
}

void Bpe::tabulate_bytes() {
  if (std::ranges::any_of(byte_ids_, [](TokenId id) { return id < 0; })) return;
  byte_merges_.reserve(256 * 256);
  for (const TokenId left : byte_ids_) {
    for (const TokenId right : byte_ids_) byte_merges_.push_back(merges_.find(left, right));
  }
}

namespace {

// Unknown symbols as the reference counts them: one is written when the next known character or, unless they are fused,
// the next unknown one comes. Bytes of a fallback do not end a run of them.
class UnknownRun {
 public:
  UnknownRun(std::optional<TokenId> id, bool fuse) : id_(id), fuse_(fuse) {}
  void add(std::vector<TokenId>& symbols) {
    if (!fuse_) end(symbols);
    pending_ = id_.has_value();
  }
  void end(std::vector<TokenId>& symbols) {
    if (pending_) symbols.push_back(*id_);
    pending_ = false;
  }

 private:
  std::optional<TokenId> id_;
  bool fuse_;
  bool pending_ = false;
};

}  // namespace

void Bpe::symbols_of_bytes(std::string_view word, std::vector<TokenId>& symbols) const {
  UnknownRun unknown(unknown_, fuse_unknown_);
  for (const char byte : word) {
    const TokenId id = byte_ids_[static_cast<std::uint8_t>(byte)];
    if (id >= 0) {
      unknown.end(symbols);
      symbols.push_back(id);
    } else if (!add_fallback(spell_bytes({&byte, 1}), symbols)) {
      unknown.add(symbols);
    }
  }
  unknown.end(symbols);
}

bool Bpe::add_fallback(std::string_view character, std::vector<TokenId>& symbols) const {
  if (!byte_fallback_) return false;
  const auto fallback = [&](char byte) { return fallback_ids_[static_cast<std::uint8_t>(byte)]; };
  if (std::ranges::any_of(character, [&](char byte) { return fallback(byte) < 0; })) return false;
  for (const char byte : character) symbols.push_back(fallback(byte));
  return true;
}

void Bpe::symbols_of_characters(std::string_view word, std::vector<TokenId>& symbols) const {
  UnknownRun unknown(unknown_, fuse_unknown_);
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = word.substr(at, code_point_at(word, at).length);
    at += character.size();
    if (const auto* found = words_.find(character)) {
      unknown.end(symbols);
      symbols.push_back(found->id());
    } else if (!add_fallback(character, symbols)) {
      unknown.add(symbols);
    }
  }
  unknown.end(symbols);
}

Result<> Bpe::encode(const Pieces& pieces, std::vector<TokenId>& ids) const {
  Scratch scratch;
  const TokenTable& words = pieces.is_bytes ? byte_words_ : words_;
  for (const Pieces::Range range : pieces.ranges) {
    const std::string_view piece = pieces.view(range);
    const TokenTable::Entry* whole = words.find(piece);
    if (whole != nullptr && (ignore_merges_ || whole->verdict() == TokenTable::Verdict::kYes)) {
      ids.push_back(whole->id());
      continue;
    }
    encode_piece(piece, pieces.is_bytes, scratch, ids);
  }
  return {};
}

// Cuts where no token reaches over, so that what is left are mostly whole tokens: text without spaces comes in long
// pieces. ASCII is not cut, since nearly every pair of its letters stands in some token.
void Bpe::encode_piece(std::string_view piece, bool is_bytes, Scratch& scratch, std::vector<TokenId>& ids) const {
  constexpr std::size_t kLongEnough = 8;
  if (!is_bytes || byte_merges_.empty() || piece.size() < kLongEnough || is_ascii(piece)) {
    return encode_word(piece, is_bytes, scratch, ids);
  }
  std::size_t begin = 0;
  char32_t before = 0;
  for (std::size_t at = 0; at < piece.size();) {
    const CodePoint c = code_point_at(piece, at);
    if (at > begin && !pairs_.may_join(before, c.value, piece, at)) {
      encode_word(piece.substr(begin, at - begin), is_bytes, scratch, ids);
      begin = at;
    }
    before = c.value;
    at += c.length;
  }
  encode_word(piece.substr(begin), is_bytes, scratch, ids);
}

void Bpe::encode_word(std::string_view word, bool is_bytes, Scratch& scratch, std::vector<TokenId>& ids) const {
  using enum TokenTable::Verdict;
  const TokenTable::Entry* whole = (is_bytes ? byte_words_ : words_).find(word);
  if (whole != nullptr && whole->verdict() == kYes) {
    ids.push_back(whole->id());
    return;
  }
  auto& symbols = scratch.symbols;
  symbols.clear();
  is_bytes ? symbols_of_bytes(word, symbols) : symbols_of_characters(word, symbols);
  if (symbols.size() > 1) {
    rank_pairs(word, is_bytes, scratch);
    symbols.size() <= kShortWord ? merge_short(scratch) : merge_long(scratch);
  }
  // Whether the merges lead to the whole word is the same every time.
  if (whole != nullptr && whole->verdict() == kUnknown) {
    whole->set_verdict(symbols.size() == 1 && symbols[0] == whole->id() ? kYes : kNo);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void Bpe::rank_pairs(std::string_view word, bool is_bytes, Scratch& scratch) const {
  const auto& symbols = scratch.symbols;
  auto& ranks = scratch.ranks;
  ranks.resize(symbols.size() - 1);
  if (is_bytes && !byte_merges_.empty()) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(word[i]); };
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = byte_merges_[byte(i) * std::size_t{256} + byte(i + 1)];
  } else {
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = merges_.find(symbols[i], symbols[i + 1]);
  }
}

void Bpe::merge_short(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& ranks = scratch.ranks;
  while (!ranks.empty()) {
    std::uint32_t lowest = MergeTable::kNone;
    for (const std::uint32_t rank : ranks) lowest = std::min(lowest, rank);
    if (lowest == MergeTable::kNone) return;
    const auto best = std::ranges::find(ranks, lowest) - ranks.begin();
    const auto left = static_cast<std::size_t>(best);
    symbols[left] = merged_[lowest];
    symbols.erase(symbols.begin() + best + 1);
    ranks.erase(ranks.begin() + best);
    if (left > 0) ranks[left - 1] = merges_.find(symbols[left - 1], symbols[left]);
    if (left < ranks.size()) ranks[left] = merges_.find(symbols[left], symbols[left + 1]);
  }
}

void Bpe::merge_long(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  auto& ranks = scratch.ranks;
  const auto count = static_cast<std::uint32_t>(symbols.size());
  scratch.previous.resize(count);
  scratch.next.resize(count);
  heap.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    scratch.previous[i] = i - 1;
    scratch.next[i] = i + 1;
    if (i + 1 < count && ranks[i] != MergeTable::kNone) heap.push_back({ranks[i], i});
  }
  std::ranges::make_heap(heap, std::greater<>());
  const auto offer = [&](std::uint32_t left) {
    const std::uint32_t right = scratch.next[left];
    if (right >= count) return;
    ranks[left] = merges_.find(symbols[left], symbols[right]);
    if (ranks[left] == MergeTable::kNone) return;
    heap.push_back({ranks[left], left});
    std::ranges::push_heap(heap, std::greater<>());
  };
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, std::greater<>());
    const Scratch::Candidate top = heap.back();
    heap.pop_back();
    const std::uint32_t left = top.position;
    if (symbols[left] < 0) continue;
    const std::uint32_t right = scratch.next[left];
    // Either side may have become another symbol since.
    if (right >= count || ranks[left] != top.rank) continue;
    symbols[left] = merged_[top.rank];
    symbols[right] = -1;
    const std::uint32_t after = scratch.next[right];
    scratch.next[left] = after;
    if (after < count) scratch.previous[after] = left;
    if (left > 0) offer(scratch.previous[left]);
    offer(left);
  }
  std::erase(symbols, -1);
}

}  // namespace octet::text
