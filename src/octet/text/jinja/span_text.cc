#include "octet/text/jinja/span_text.h"

#include <algorithm>
#include <utility>

namespace octet::text::jinja {

SpanText::SpanText(std::string bytes, bool is_data) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) runs_.push_back({bytes_.size(), is_data});
}

bool SpanText::is_data(std::size_t at) const {
  const auto run = std::ranges::upper_bound(runs_, at, {}, &Run::end);
  return run != runs_.end() && run->is_data;
}

void SpanText::append(std::string_view bytes, bool is_data) {
  if (bytes.empty()) return;
  bytes_ += bytes;
  if (!runs_.empty() && runs_.back().is_data == is_data) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), is_data});
  }
}

void SpanText::append(const SpanText& other, std::size_t begin, std::size_t end) {
  auto run = std::ranges::upper_bound(other.runs_, begin, {}, &Run::end);
  const std::string_view from = other.bytes_;
  while (begin < end) {
    const std::size_t stop = std::min(end, run->end);
    append(from.substr(begin, stop - begin), run->is_data);
    begin = stop;
    ++run;
  }
}

SpanText SpanText::slice(std::size_t begin, std::size_t end) const {
  SpanText part;
  part.is_markup_ = is_markup_;
  part.append(*this, begin, end);
  return part;
}

void SpanText::truncate(std::size_t size) {
  bytes_.resize(size);
  while (!runs_.empty() && (runs_.size() > 1 ? runs_[runs_.size() - 2].end : 0) >= size) runs_.pop_back();
  if (!runs_.empty()) runs_.back().end = size;
}

}  // namespace octet::text::jinja
