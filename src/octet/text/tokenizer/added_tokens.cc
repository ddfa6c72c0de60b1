#include "octet/text/tokenizer/added_tokens.h"

#include <algorithm>
#include <array>

#include "octet/text/unicode.h"

namespace octet::text {
namespace {

std::size_t without_space_at_end(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t last = previous_code_point(text, end);
    if (!is_white_space(code_point_at(text, last).value)) break;
    end = last;
  }
  return end;
}

std::size_t space_at_start(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    if (!is_white_space(c.value)) break;
    at += c.length;
  }
  return at;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  if (begin > 0 && is_word(code_point_at(text, previous_code_point(text, begin)).value)) return false;
  return end == text.size() || !is_word(code_point_at(text, end).value);
}

enum class Place { kTemplate, kData, kBoth };

// Where a range lies among spans that cover the text in order.
Place place_of(std::span<const TextSpan> spans, std::size_t begin, std::size_t end) {
  bool in_template = false, in_data = false;
  auto span = std::ranges::upper_bound(spans, begin, {}, &TextSpan::end);
  for (; span != spans.end() && span->begin < end; ++span) (span->is_data ? in_data : in_template) = true;
  return in_template && in_data ? Place::kBoth : in_template ? Place::kTemplate : Place::kData;
}

}  // namespace

StringSet::StringSet(std::span<const std::string> strings) : nodes_(1) {
  for (std::uint32_t i = 0; i < strings.size(); ++i) {
    if (strings[i].empty()) continue;
    starts_[static_cast<std::uint8_t>(strings[i][0])] = true;
    std::uint32_t at = 0;
    for (const char byte : strings[i]) {
      auto& children = nodes_[at].children;
      const auto found = std::ranges::lower_bound(children, byte, {}, &std::pair<char, std::uint32_t>::first);
      if (found != children.end() && found->first == byte) {
        at = found->second;
      } else {
        at = static_cast<std::uint32_t>(nodes_.size());
        children.emplace(found, byte, at);
        nodes_.emplace_back();
      }
    }
    nodes_[at].value = i;
  }
}

void StringSet::matches_at(std::string_view text, std::size_t at,
                           std::vector<std::pair<std::size_t, std::uint32_t>>& out) const {
  out.clear();
  std::uint32_t node = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto& children = nodes_[node].children;
    const auto found = std::ranges::lower_bound(children, text[i], {}, &std::pair<char, std::uint32_t>::first);
    if (found == children.end() || found->first != text[i]) break;
    node = found->second;
    if (nodes_[node].value) out.emplace_back(i + 1 - at, *nodes_[node].value);
  }
  std::ranges::reverse(out);
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, Group raw, Group in_template, Group normalized)
    : tokens_(std::move(tokens)),
      raw_(std::move(raw)),
      in_template_(std::move(in_template)),
      normalized_(std::move(normalized)) {
  for (const AddedToken& token : tokens_) special_[token.id] = token.special;
}

Result<AddedTokens> AddedTokens::make(std::vector<AddedToken> tokens, const Normalizer* normalizer) {
  std::vector<std::string> raw, in_template, normalized;
  std::vector<std::uint32_t> raw_tokens, template_tokens, normalized_tokens;
  for (std::uint32_t i = 0; i < tokens.size(); ++i) {
    const AddedToken& token = tokens[i];
    if (!token.normalized) {
      raw.push_back(token.content);
      raw_tokens.push_back(i);
    } else {
      std::string content = token.content;
      if (normalizer != nullptr) {
        OCTET_TRY(content, normalizer->apply(std::move(content)));
      }
      normalized.push_back(std::move(content));
      normalized_tokens.push_back(i);
    }
    // Spans end with the normalizer, so in a rendered prompt every special token is looked for in the raw text.
    if (!token.normalized || token.special) {
      in_template.push_back(token.content);
      template_tokens.push_back(i);
    }
  }
  return AddedTokens(std::move(tokens), {StringSet(raw), std::move(raw_tokens)},
                     {StringSet(in_template), std::move(template_tokens)},
                     {StringSet(normalized), std::move(normalized_tokens)});
}

std::vector<AddedTokens::Section> AddedTokens::split_raw(std::string_view text, const Special& special) const {
  return split(text, special.spans ? in_template_ : raw_, special);
}

std::vector<AddedTokens::Section> AddedTokens::split_normalized(std::string_view text, const Special& special) const {
  return split(text, normalized_, {special.parse && !special.spans, std::nullopt});
}

std::vector<AddedTokens::Section> AddedTokens::split(std::string_view text, const Group& group,
                                                     const Special& special) const {
  std::vector<Section> sections;
  std::vector<std::pair<std::size_t, std::uint32_t>> matches;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !group.set.empty();) {
    if (!group.set.may_start(text[at])) {
      ++at;
      continue;
    }
    group.set.matches_at(text, at, matches);
    // The longest counts. A special one that reaches over the border of a template span is no match at all: neither may
    // data complete a control token, nor may it swallow one that begins behind it.
    std::size_t chosen = 0;
    while (special.spans && chosen < matches.size() && tokens_[group.tokens[matches[chosen].second]].special &&
           place_of(*special.spans, at, at + matches[chosen].first) == Place::kBoth) {
      ++chosen;
    }
    if (chosen == matches.size()) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[group.tokens[matches[chosen].second]];
    std::size_t begin = at, end = at + matches[chosen].first;
    at = end;
    const bool parsed = special.spans ? place_of(*special.spans, begin, end) == Place::kTemplate : special.parse;
    if (token.special && !parsed) continue;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.strip_left) begin = std::max(without_space_at_end(text.substr(0, begin)), done);
    if (token.strip_right) end += space_at_start(text.substr(end));
    if (done < begin) sections.push_back({done, begin, std::nullopt});
    sections.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) sections.push_back({done, text.size(), std::nullopt});
  return sections;
}

bool AddedTokens::is_special(TokenId id) const {
  const auto found = special_.find(id);
  return found != special_.end() && found->second;
}

}  // namespace octet::text
