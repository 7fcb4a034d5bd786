#include "runtime/pipeline/models/text/sentencepiece_segments.hpp"

#include <algorithm>
#include <limits>

#include "runtime/device/text/utf8.hpp"

namespace greta::runtime {

SentencePieceSegments::SentencePieceSegments(const SentencePieceModel& model) : model_(model) {
  least_ = std::numeric_limits<float>::max();
  most_ = std::numeric_limits<float>::min();
  for (std::size_t i = 0; i < model.pieces.size(); ++i) {
    const ScoredToken& piece = model.pieces[i];
    const auto id = static_cast<std::int32_t>(i);
    const bool normal = piece.kind == TokenKind::normal,
               own = piece.kind == TokenKind::user_defined;
    if (normal) {
      least_ = std::min(least_, piece.score);
      most_ = std::max(most_, piece.score);
    }
    if (own) own_.add(piece.text, id);
    if (!normal && !own && piece.kind != TokenKind::unused) continue;
    ids_.emplace(piece.text, id);
    pieces_.add(piece.text, id);
    longest_ = std::max(longest_, piece.text.size());
  }
  own_.sort();
  pieces_.sort();
}

std::pair<std::string_view, std::size_t> SentencePieceSegments::normalised(
    std::string_view text) const {
  if (const std::size_t length = own_.longest(text).first; length > 0) {
    return {text.substr(0, length), length};
  }
  if (const auto replaced = model_.characters.longest(text); replaced.second > 0) return replaced;
  const std::size_t length = first_character(text).bytes;
  return {text.substr(0, length), length};
}

std::string SentencePieceSegments::normalise(std::string_view text, bool adds_space) const {
  const bool removes = model_.removes_extra_spaces;
  std::string result;
  if (removes) {
    while (!text.empty()) {
      const auto [part, length] = normalised(text);
      if (part != " ") break;
      text.remove_prefix(length);
    }
  }
  if (text.empty()) return result;
  if (adds_space) result = escaped_space;
  bool after_space = removes;
  while (!text.empty()) {
    auto [part, length] = normalised(text);
    while (after_space && part.starts_with(' ')) part.remove_prefix(1);
    for (const char c : part) {
      if (c == ' ') {
        result += escaped_space;
      } else {
        result += c;
      }
    }
    if (!part.empty()) after_space = removes && part.ends_with(' ');
    text.remove_prefix(length);
  }
  if (removes) {
    while (result.ends_with(escaped_space)) result.resize(result.size() - escaped_space.size());
  }
  return result;
}

/// Merges characters by the highest score. A piece that is not used is divided again as it was
/// found last.
std::vector<TextSymbol> SentencePieceSegments::merge(std::string_view text) const {
  std::vector<TextSymbol> symbols;
  for (std::size_t at = 0; at < text.size();) {
    auto [length, id] = own_.longest(text.substr(at));
    if (length == 0) {
      length = first_character(text.substr(at)).bytes;
      const auto found = ids_.find(text.substr(at, length));
      id = found != ids_.end() ? found->second : -1;
    }
    symbols.push_back({id, at, at + length});
    at += length;
  }
  std::unordered_map<std::string_view, std::size_t> halves;  // length of the first one
  const auto merges = [&](const TextSymbol& s) {
    return s.id < 0 || kind(s.id) != TokenKind::user_defined;
  };
  const auto find = [&](const TextSymbol& a, const TextSymbol& b) -> std::optional<TextMerge> {
    if (b.end - a.begin > longest_ || !merges(a) || !merges(b)) return std::nullopt;
    const std::string_view piece = text.substr(a.begin, b.end - a.begin);
    const auto found = ids_.find(piece);
    if (found == ids_.end()) return std::nullopt;
    if (kind(found->second) == TokenKind::unused) halves[piece] = a.end - a.begin;
    return TextMerge{-double{score(found->second)}, found->second};
  };
  std::vector<TextSymbol> pieces, stack;
  for (const TextSymbol& symbol : merge_symbols(std::move(symbols), find)) {
    stack = {symbol};
    while (!stack.empty()) {
      TextSymbol one = stack.back();
      stack.pop_back();
      const std::string_view piece = text.substr(one.begin, one.end - one.begin);
      const auto found = ids_.find(piece);
      one.id = found != ids_.end() ? found->second : model_.unknown;
      const auto half = halves.find(piece);
      if (kind(one.id) != TokenKind::unused || half == halves.end()) {
        pieces.push_back(one);
        continue;
      }
      const std::size_t middle = one.begin + half->second;
      stack.push_back({-1, middle, one.end});
      stack.push_back({-1, one.begin, middle});
    }
  }
  return pieces;
}

/// Finds the pieces whose scores, logarithms of probabilities, have the largest sum.
std::vector<TextSymbol> SentencePieceSegments::most_likely(std::string_view text) const {
  constexpr float penalty = 10;            // of unknown characters
  constexpr double of_user_defined = 0.1;  // which are preferred
  constexpr auto none = std::numeric_limits<std::size_t>::max();
  struct Best {
    std::int32_t id = -1;
    float score = 0;
    std::size_t begin = none;
  };
  std::vector<Best> best(text.size() + 1);  // ways to what ends at a byte
  const float unknown = least_ - penalty;
  for (std::size_t at = 0; at < text.size();) {
    const float so_far = best[at].score;
    const std::size_t character = first_character(text.substr(at)).bytes;
    bool single = false;
    const auto offer = [&](std::size_t length, std::int32_t id, double sum) {
      Best& end = best[at + length];
      if (end.begin == none || sum > end.score) end = {id, static_cast<float>(sum), at};
    };
    pieces_.prefixes(text.substr(at), [&](std::size_t length, std::int32_t id) {
      if (kind(id) == TokenKind::unused) return;
      const bool own = kind(id) == TokenKind::user_defined;
      const double by_length = static_cast<float>(length) * most_ - of_user_defined;
      offer(length, id, (own ? by_length : double{score(id)}) + double{so_far});
      single = single || length == character;
    });
    if (!single) offer(character, model_.unknown, double{unknown + so_far});
    at += character;
  }
  std::vector<TextSymbol> pieces;
  for (std::size_t end = text.size(); end > 0; end = best[end].begin) {
    pieces.push_back({best[end].id, best[end].begin, end});
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace greta::runtime
