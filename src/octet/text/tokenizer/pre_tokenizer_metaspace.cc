#include <algorithm>
#include <utility>

#include "octet/text/tokenizer/json_reader.h"
#include "octet/text/tokenizer/metaspace.h"
#include "octet/text/tokenizer/split_pieces.h"

namespace octet::text {
namespace {

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(std::string mark, PrependScheme scheme, bool split)
      : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  Result<> apply(Pieces& pieces) const override {
    spell_pieces(pieces);
    std::string text;
    text.reserve(pieces.text.size() + pieces.text.size() / 2 + mark_.size());
    std::vector<Pieces::Range> ranges;
    ranges.reserve(pieces.ranges.size());
    for (const Pieces::Range range : pieces.ranges) {
      const std::string_view piece = pieces.view(range);
      const bool marked = piece.starts_with(' ') || piece.starts_with(mark_);
      const std::size_t begin = text.size();
      if (!marked && wants_prefix(pieces, range)) text += mark_;
      append_marked(piece, text);
      split_ ? cut(text, begin, ranges) : ranges.push_back({begin, text.size()});
    }
    pieces.at_start = pieces.at_start && !pieces.ranges.empty() && pieces.ranges[0].begin == 0;
    pieces.text = std::move(text);
    pieces.ranges.swap(ranges);
    return {};
  }

 private:
  bool wants_prefix(const Pieces& pieces, Pieces::Range range) const {
    return scheme_ == PrependScheme::kAlways ||
           (scheme_ == PrependScheme::kFirst && pieces.at_start && range.begin == 0);
  }

  void append_marked(std::string_view piece, std::string& text) const {
    for (std::size_t at = 0;;) {
      const std::size_t space = piece.find(' ', at);
      if (space == std::string_view::npos) {
        text += piece.substr(at);
        return;
      }
      text += piece.substr(at, space - at);
      text += mark_;
      at = space + 1;
    }
  }

  // Every mark in the text from `begin` on begins a piece.
  void cut(std::string_view text, std::size_t begin, std::vector<Pieces::Range>& ranges) const {
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find(mark_, begin + 1), text.size());
      ranges.push_back({begin, end});
      begin = end;
    }
  }

  std::string mark_;
  PrependScheme scheme_;
  bool split_;
};

Result<PrependScheme> read_scheme(const Json& json, std::string_view path) {
  OCTET_TRY(const bool prefix, read_flag(json, "add_prefix_space", true, path));
  if (member(json, "prepend_scheme") == nullptr) return prefix ? PrependScheme::kAlways : PrependScheme::kNever;
  OCTET_TRY(const std::string name, read_text(json, "prepend_scheme", path));
  if (name == "never") return PrependScheme::kNever;
  if (name != "always" && name != "first") {
    return fail(ErrorCode::kUnsupported, "{}.prepend_scheme: \"{}\" is not supported", path, name);
  }
  if (!prefix) {
    return fail(ErrorCode::kInvalid, "{}.prepend_scheme: \"{}\" contradicts add_prefix_space false", path, name);
  }
  return name == "always" ? PrependScheme::kAlways : PrependScheme::kFirst;
}

}  // namespace

Result<MetaspaceOptions> read_metaspace_options(const Json& json, std::string_view path) {
  MetaspaceOptions options;
  OCTET_TRY(options.mark, read_character(json, "replacement", path));
  OCTET_TRY(options.scheme, read_scheme(json, path));
  OCTET_TRY(options.split, read_flag(json, "split", true, path));
  return options;
}

Result<std::unique_ptr<PreTokenizer>> read_metaspace(const Json& json, std::string_view path) {
  OCTET_TRY(MetaspaceOptions options, read_metaspace_options(json, path));
  return make_metaspace(std::move(options.mark), options.scheme, options.split);
}

std::unique_ptr<PreTokenizer> make_metaspace(std::string mark, PrependScheme scheme, bool split) {
  return std::make_unique<Metaspace>(std::move(mark), scheme, split);
}

}  // namespace octet::text
