#include "tuner/diagnose/comparison/text_edits.hpp"

#include <algorithm>
#include <cstdint>

#include "tuner/diagnose/changes/preprocessor.hpp"

namespace greta::tuner {
namespace {

using Pieces = std::vector<std::string_view>;

/// Pieces of a text in place of which another one has others.
struct PieceEdit {
  std::size_t begin = 0, end = 0;        ///< of the text
  std::size_t by_begin = 0, by_end = 0;  ///< of the other one
};

Pieces lines_of(std::string_view text) {
  Pieces lines;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

/// Returns words, numbers, blanks between them, and signs, each by itself.
Pieces words_of(std::string_view text) {
  Pieces words;
  const auto kind = [](char c) { return is_name_character(c) ? 1 : c == ' ' || c == '\t' ? 2 : 0; };
  while (!text.empty()) {
    std::size_t length = 1;
    if (const int first = kind(text[0]); first != 0) {
      while (length < text.size() && kind(text[length]) == first) ++length;
    }
    words.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

/// Finds a shortest list of edits between parts that begin and end with different pieces.
class ShortestEdits {
 public:
  ShortestEdits(const Pieces& from, const Pieces& to, std::size_t begin, std::size_t from_end,
                std::size_t to_end)
      : from_(from),
        to_(to),
        begin_(begin),
        n_(static_cast<std::int64_t>(from_end - begin)),
        m_(static_cast<std::int64_t>(to_end - begin)) {}

  /// Texts with little in common are one edit.
  std::vector<PieceEdit> find() {
    if (n_ == 0 || m_ == 0 || !search()) return {whole()};
    // Pieces of both texts that are equal, from the last to the first.
    std::vector<std::pair<std::int64_t, std::int64_t>> equal;
    std::int64_t x = n_, y = m_;
    for (auto d = static_cast<std::int64_t>(reached_.size()); d > 0; --d) {
      const auto& before = reached_[static_cast<std::size_t>(d - 1)];
      const std::int64_t k = x - y;
      const bool down = goes_down(before, d, k);
      const std::int64_t k_before = down ? k + 1 : k - 1;
      const std::int64_t x_before = at(before, d - 1, k_before);
      const std::int64_t x_turn = down ? x_before : x_before + 1;
      for (; x > x_turn; --x, --y) equal.emplace_back(x - 1, y - 1);
      x = x_before;
      y = x_before - k_before;
    }
    for (; x > 0 && y > 0; --x, --y) equal.emplace_back(x - 1, y - 1);
    std::reverse(equal.begin(), equal.end());
    return between(equal);
  }

 private:
  static constexpr std::int64_t most_edits = 3000;

  PieceEdit whole() const {
    return {begin_, begin_ + static_cast<std::size_t>(n_), begin_,
            begin_ + static_cast<std::size_t>(m_)};
  }
  /// Of the farthest places after d edits: the one on a diagonal, of which there are -d to d.
  static std::int64_t at(const std::vector<std::int64_t>& places, std::int64_t d, std::int64_t k) {
    return k < -d || k > d ? -1 : places[static_cast<std::size_t>(k + d)];
  }
  static bool goes_down(const std::vector<std::int64_t>& before, std::int64_t d, std::int64_t k) {
    return k == -d || (k != d && at(before, d - 1, k - 1) < at(before, d - 1, k + 1));
  }
  bool same(std::int64_t x, std::int64_t y) const {
    return from_[begin_ + static_cast<std::size_t>(x)] == to_[begin_ + static_cast<std::size_t>(y)];
  }

  /// Keeps the farthest places that each number of edits reaches, before the last one.
  bool search() {
    std::vector<std::int64_t> before;
    for (std::int64_t d = 0; d <= std::min(n_ + m_, most_edits); ++d) {
      std::vector<std::int64_t> places(static_cast<std::size_t>(2 * d + 1), -1);
      for (std::int64_t k = -d; k <= d; k += 2) {
        std::int64_t x = 0;
        if (d > 0) {
          x = goes_down(before, d, k) ? at(before, d - 1, k + 1) : at(before, d - 1, k - 1) + 1;
        }
        while (x < n_ && x - k < m_ && same(x, x - k)) ++x;
        places[static_cast<std::size_t>(k + d)] = x;
        if (x >= n_ && x - k >= m_) {
          if (d > 0) reached_.push_back(std::move(before));
          return true;
        }
      }
      if (d > 0) reached_.push_back(std::move(before));
      before = std::move(places);
    }
    return false;
  }

  /// Returns what lies between equal pieces.
  std::vector<PieceEdit> between(const std::vector<std::pair<std::int64_t, std::int64_t>>& equal) {
    std::vector<PieceEdit> edits;
    std::int64_t x = 0, y = 0;
    const auto add = [&](std::int64_t x_end, std::int64_t y_end) {
      if (x_end > x || y_end > y) {
        edits.push_back(
            {begin_ + static_cast<std::size_t>(x), begin_ + static_cast<std::size_t>(x_end),
             begin_ + static_cast<std::size_t>(y), begin_ + static_cast<std::size_t>(y_end)});
      }
      x = x_end + 1;
      y = y_end + 1;
    };
    for (const auto& [a, b] : equal) add(a, b);
    add(n_, m_);
    return edits;
  }

  const Pieces& from_;
  const Pieces& to_;
  std::size_t begin_;
  std::int64_t n_, m_;
  std::vector<std::vector<std::int64_t>> reached_;  ///< by each number of edits
};

std::vector<PieceEdit> piece_edits(const Pieces& from, const Pieces& to) {
  std::size_t begin = 0, from_end = from.size(), to_end = to.size();
  while (begin < from_end && begin < to_end && from[begin] == to[begin]) ++begin;
  while (from_end > begin && to_end > begin && from[from_end - 1] == to[to_end - 1]) {
    --from_end;
    --to_end;
  }
  if (begin == from_end && begin == to_end) return {};
  return ShortestEdits(from, to, begin, from_end, to_end).find();
}

/// Returns edits of pieces as edits of a text that begins at `start`.
std::vector<TextEdit> text_edits(const Pieces& from, const Pieces& to, std::size_t start) {
  std::vector<TextEdit> edits;
  std::size_t at = 0;
  for (const PieceEdit& one : piece_edits(from, to)) {
    for (; at < one.begin; ++at) start += from[at].size();
    TextEdit& made = edits.emplace_back();
    made.start = start;
    for (; at < one.end; ++at) start += from[at].size();
    made.length = start - made.start;
    for (std::size_t i = one.by_begin; i < one.by_end; ++i) made.by += to[i];
  }
  return edits;
}

/// Adds the lines of an edit that only adds or only removes some.
void add_by_line(std::string_view from, const TextEdit& edit, std::vector<TextEdit>& edits) {
  if (edit.length > 0 && !edit.by.empty()) {
    edits.push_back(edit);
    return;
  }
  std::size_t start = edit.start;
  for (const auto line : lines_of(from.substr(edit.start, edit.length))) {
    edits.push_back({start, line.size(), {}});
    start += line.size();
  }
  for (const auto line : lines_of(edit.by)) edits.push_back({edit.start, 0, std::string(line)});
}

}  // namespace

std::vector<TextEdit> line_edits(std::string_view from, std::string_view to) {
  return text_edits(lines_of(from), lines_of(to), 0);
}

std::vector<TextEdit> word_edits(std::string_view from, const TextEdit& edit) {
  const std::string_view own = from.substr(edit.start, edit.length);
  std::vector<TextEdit> edits;
  for (const TextEdit& one : text_edits(words_of(own), words_of(edit.by), edit.start))
    add_by_line(from, one, edits);
  return edits;
}

std::string with_edits(std::string_view from, const std::vector<TextEdit>& edits) {
  std::string text;
  std::size_t at = 0;
  for (const TextEdit& one : edits) {
    text += from.substr(at, one.start - at);
    text += one.by;
    at = one.end();
  }
  text += from.substr(at);
  return text;
}

}  // namespace greta::tuner
