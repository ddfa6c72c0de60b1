// Text that remembers where each byte came from: the template, or the data it was given.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace octet::text::jinja {

class SpanText {
 public:
  struct Run {
    std::size_t end = 0;  // one past its last byte
    bool is_data = false;
  };

  SpanText() = default;
  explicit SpanText(std::string bytes, bool is_data = false);

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Neighbouring runs differ in is_data; together they cover the bytes.
  const std::vector<Run>& runs() const { return runs_; }
  bool is_data(std::size_t at) const;
  // Already HTML, as the filters safe and escape give it: added to other text, the other is escaped. Slices keep it.
  bool is_markup() const { return is_markup_; }
  void set_markup(bool is_markup) { is_markup_ = is_markup; }
  // What it costs in memory.
  std::size_t footprint() const { return sizeof(SpanText) + bytes_.capacity() + runs_.capacity() * sizeof(Run); }

  void append(std::string_view bytes, bool is_data);
  void append(const SpanText& other) { append(other, 0, other.size()); }
  void append(const SpanText& other, std::size_t begin, std::size_t end);
  SpanText slice(std::size_t begin, std::size_t end) const;
  // Drops all bytes from `size` on.
  void truncate(std::size_t size);

 private:
  std::string bytes_;
  std::vector<Run> runs_;
  bool is_markup_ = false;
};

}  // namespace octet::text::jinja
