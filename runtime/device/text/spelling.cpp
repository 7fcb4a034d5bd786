#include "runtime/device/text/spelling.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace greta::device {
namespace {

std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

/// Returns the optimal string alignment distance of two texts.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + other});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_spelling(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string text = plain(word);
  std::size_t closest = std::max<std::size_t>(1, text.size() / 3) + 1;
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = distance(text, plain(candidate));
    if (edits >= closest) continue;
    closest = edits;
    nearest = candidate;
  }
  return nearest;
}

std::string must_be_one_of(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest_spelling(word, candidates);
  return fmt::format("must be one of {}{}", fmt::join(candidates, ", "),
                     near.empty() ? "" : "; did you mean " + near + "?");
}

}  // namespace greta::device
