#include "octet/text/tokenizer/sentencepiece_bpe.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "octet/text/unicode.h"

namespace octet::text {
namespace {

constexpr std::uint32_t kNone = 0xFFFF'FFFF;

// Pieces that two neighbours may make.
bool can_be_made(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined || type == PieceType::kUnused;
}

}  // namespace

struct SentencePieceBpe::Run {
  std::string_view text;
  std::vector<Symbol> symbols;
  std::vector<Candidate> agenda;
  // How a piece that is not to come out was made.
  std::unordered_map<std::string_view, std::pair<std::string_view, std::string_view>> unused;

  std::string_view view(const Symbol& symbol) const { return text.substr(symbol.begin, symbol.size); }
};

SentencePieceBpe::SentencePieceBpe(SentencePieceFile file) : file_(std::move(file)), symbols_(file_) {
  ids_.reserve(file_.pieces.size());
  for (std::size_t id = 0; id < file_.pieces.size(); ++id) {
    const auto& piece = file_.pieces[id];
    ids_[piece.text] = static_cast<TokenId>(id);
    if (piece.type == PieceType::kUnknown) unknown_ = static_cast<TokenId>(id);
    if (piece.type != PieceType::kByte) continue;
    unsigned int byte = 0;
    std::from_chars(piece.text.data() + 3, piece.text.data() + 5, byte, 16);
    byte_ids_[byte & 0xFF] = static_cast<TokenId>(id);
  }
}

std::vector<SentencePieceBpe::Symbol> SentencePieceBpe::split(std::string_view text) const {
  std::vector<Symbol> symbols;
  symbols.reserve(text.size());
  std::vector<SymbolSet::Match> scratch;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t defined = symbols_.longest(text, at, scratch);
    const std::size_t size = defined > 0 ? defined : code_point_at(text, at).length;
    const auto index = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back({.begin = at, .size = size, .previous = index - 1, .next = index + 1, .frozen = defined > 0});
    at += size;
  }
  if (!symbols.empty()) symbols.back().next = kNone;
  return symbols;
}

void SentencePieceBpe::offer(Run& run, std::uint32_t left) const {
  if (left == kNone) return;
  const Symbol& first = run.symbols[left];
  if (first.next == kNone) return;
  const Symbol& second = run.symbols[first.next];
  if (first.frozen || second.frozen) return;
  const std::size_t size = first.size + second.size;
  const std::string_view made = run.text.substr(first.begin, size);
  const auto found = ids_.find(made);
  if (found == ids_.end()) return;
  const auto& piece = file_.pieces[static_cast<std::size_t>(found->second)];
  if (!can_be_made(piece.type)) return;
  if (piece.type == PieceType::kUnused) run.unused[made] = {run.view(first), run.view(second)};
  run.agenda.push_back({piece.score, left, size});
  std::push_heap(run.agenda.begin(), run.agenda.end());
}

void SentencePieceBpe::join(Run& run) const {
  for (std::uint32_t i = 0; i < run.symbols.size(); ++i) offer(run, i);
  while (!run.agenda.empty()) {
    std::pop_heap(run.agenda.begin(), run.agenda.end());
    const Candidate top = run.agenda.back();
    run.agenda.pop_back();
    Symbol& left = run.symbols[top.left];
    if (left.size == 0 || left.next == kNone) continue;
    Symbol& right = run.symbols[left.next];
    // Either side may have been joined to something else since.
    if (left.size + right.size != top.size) continue;
    left.size = top.size;
    right.size = 0;
    left.next = right.next;
    if (left.next != kNone) run.symbols[left.next].previous = top.left;
    offer(run, left.previous);
    offer(run, top.left);
  }
}

void SentencePieceBpe::emit(const Run& run, std::string_view piece, bool& after_unknown,
                            std::vector<TokenId>& ids) const {
  std::vector<std::string_view> left_to_do = {piece};
  while (!left_to_do.empty()) {
    const std::string_view text = left_to_do.back();
    left_to_do.pop_back();
    const auto found = ids_.find(text);
    const TokenId id = found == ids_.end() ? unknown_ : found->second;
    const auto made = run.unused.find(text);
    if (file_.pieces[static_cast<std::size_t>(id)].type == PieceType::kUnused && made != run.unused.end()) {
      left_to_do.push_back(made->second.second);
      left_to_do.push_back(made->second.first);
      continue;
    }
    if (id == unknown_ && file_.byte_fallback) {
      for (const char byte : text) ids.push_back(byte_ids_[static_cast<std::uint8_t>(byte)]);
    } else if (id != unknown_ || !after_unknown) {
      ids.push_back(id);
    }
    after_unknown = id == unknown_;
  }
}

Result<> SentencePieceBpe::encode(const Pieces& pieces, std::vector<TokenId>& ids) const {
  for (const Pieces::Range range : pieces.ranges) {
    Run run;
    run.text = pieces.view(range);
    run.symbols = split(run.text);
    join(run);
    bool after_unknown = false;
    for (const Symbol& symbol : run.symbols) {
      if (symbol.size > 0) emit(run, run.view(symbol), after_unknown, ids);
    }
  }
  return {};
}

}  // namespace octet::text
