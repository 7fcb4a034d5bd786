#include "tuner/diagnose/changes/text_model.hpp"

#include <algorithm>
#include <cmath>

#include "tuner/diagnose/changes/source_operands.hpp"

namespace greta::tuner {
namespace {

/// Whether a token is an empty statement, or a parenthesis around a single other token, which is no
/// call and no condition.
std::vector<char> needless_tokens(const std::vector<SourceToken>& tokens) {
  std::vector<char> needless(tokens.size(), 0);
  for (std::size_t i = 1; i + 2 < tokens.size(); ++i) {
    const bool around = tokens[i].text == "(" && tokens[i + 2].text == ")";
    const bool after = tokens[i - 1].kind != SourceToken::Kind::sign ||
                       is_one_of(tokens[i - 1].text, {")", "]", ">"});
    if (around && !after) needless[i] = needless[i + 2] = 1;
    if (tokens[i].text == ";" && is_one_of(tokens[i - 1].text, {";", "{", "}"})) needless[i] = 1;
  }
  return needless;
}

}  // namespace

TextModel::TextModel(const std::vector<SourceToken>& tokens) {
  const auto needless = needless_tokens(tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (needless[i] != 0) continue;
    const auto next = static_cast<std::uint32_t>(words_.size() + 1);
    ids_.push_back(words_.try_emplace(tokens[i].text, next).first->second);
    starts_.push_back(tokens[i].start);
  }
  for (std::size_t end = 1; end <= ids_.size(); ++end) {
    for (std::size_t words = 1; words <= std::min(most_words, end); ++words)
      ++counts_[key_of(ids_, end, words)];
  }
}

std::uint64_t TextModel::key_of(const Ids& ids, std::size_t end, std::size_t words) {
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
  std::uint64_t key = words;
  for (std::size_t i = end - words; i < end; ++i) key = (key ^ ids[i]) * factor + (key >> 29);
  return key;
}

std::uint32_t TextModel::id_of(std::string_view word) const {
  const auto found = words_.find(word);
  return found == words_.end() ? 0 : found->second;  // 0: never seen
}

int TextModel::count_of(std::uint64_t key) const {
  const auto seen = counts_.find(key);
  if (seen == counts_.end()) return 0;
  const auto left_out = left_out_.find(key);
  return seen->second - (left_out == left_out_.end() ? 0 : left_out->second);
}

double TextModel::likelihood(const Ids& ids, std::size_t from) const {
  constexpr double weight_of_fewer = 1.5, weight_of_unseen = 0.5;
  const auto all = static_cast<double>(ids_.size()), kinds = static_cast<double>(words_.size() + 1);
  double sum = 0;
  for (std::size_t end = from + 1; end <= ids.size(); ++end) {
    double share =
        (count_of(key_of(ids, end, 1)) + weight_of_unseen) / (all + weight_of_unseen * kinds);
    for (std::size_t words = 2; words <= std::min(most_words, end); ++words) {
      const double with = count_of(key_of(ids, end, words));
      const double before = count_of(key_of(ids, end - 1, words - 1));
      share = (std::min(with, before) + weight_of_fewer * share) / (before + weight_of_fewer);
    }
    sum += std::log(share);
  }
  return sum;
}

void TextModel::leave_out(std::size_t from, std::size_t to) {
  if (left_from_ == from && left_to_ == to && !left_out_.empty()) return;
  left_from_ = from;
  left_to_ = to;
  left_out_.clear();
  const std::size_t last = std::min(to + most_words - 1, ids_.size());
  for (std::size_t end = from + 1; end <= last; ++end) {
    for (std::size_t words = 1; words <= std::min(most_words, end); ++words)
      ++left_out_[key_of(ids_, end, words)];
  }
  const std::size_t first = from - std::min(from, most_words - 1);
  const auto at = [this](std::size_t i) { return ids_.begin() + static_cast<std::ptrdiff_t>(i); };
  likelihood_before_ = likelihood(Ids(at(first), at(last)), from - first);
}

std::size_t TextModel::place_of(std::size_t start) const {
  return static_cast<std::size_t>(std::lower_bound(starts_.begin(), starts_.end(), start) -
                                  starts_.begin());
}

bool TextModel::has_seen(std::size_t start, std::size_t end, std::string_view by) const {
  const auto tokens = tokens_of(by);
  if (tokens.empty()) return true;
  const std::size_t from = place_of(start), to = std::max(from, place_of(end));
  if (from == 0 || to >= ids_.size()) return true;
  const std::uint32_t first = id_of(tokens.front().text), last = id_of(tokens.back().text);
  const bool begins = tokens.size() == 1
                          ? counts_.contains(key_of({ids_[from - 1], first}, 2, 2))
                          : counts_.contains(key_of({first, id_of(tokens[1].text)}, 2, 2));
  return begins || counts_.contains(key_of({last, ids_[to]}, 2, 2));
}

TextModel::Gain TextModel::gain(std::size_t start, std::size_t end, std::string_view by) {
  const std::size_t from = place_of(start), to = std::max(from, place_of(end));
  leave_out(from, to);
  const std::size_t first = from - std::min(from, most_words - 1);
  const auto at = [this](std::size_t i) { return ids_.begin() + static_cast<std::ptrdiff_t>(i); };
  Ids after(at(first), at(from));
  const auto tokens = tokens_of(by);
  const auto needless = needless_tokens(tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (needless[i] == 0) after.push_back(id_of(tokens[i].text));
  }
  const std::size_t added = after.size() - (from - first);
  after.insert(after.end(), at(to), at(std::min(to + most_words - 1, ids_.size())));
  return {likelihood(after, from - first) - likelihood_before_,
          static_cast<double>(added) - static_cast<double>(to - from)};
}

}  // namespace greta::tuner
