#include "tuner/diagnose/changes/change_order.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

namespace greta::tuner {
namespace {

constexpr std::size_t ranks = 4;

/// How likely changes of a kind and a rank are, as logarithms: fitted, by conditional logistic
/// regression, to 108 slips that were drawn at random. Of types, these are less, since most slips
/// in types have no effect.
struct WorthOfKind {
  std::string_view kind;
  std::array<double, ranks> worth;  ///< of each rank
};
constexpr double never = -10;
constexpr std::array<WorthOfKind, 14> worths{{
    {"wrong condition", {7.9, never, never, never}},
    {"superfluous term", {6.9, -6.1, never, never}},
    {"exchanged statements", {6.3, never, never, never}},
    {"wrong operator", {6.1, -2.9, 0.1, never}},
    {"exchanged operands", {4.7, never, never, never}},
    {"wrong constant", {3.9, -0.9, 0.8, -4}},
    {"wrong variable", {3.2, -4.6, never, -4.2}},
    {"wrong limit", {3, never, 1.1, never}},
    {"wrong type", {never, -4, -4, never}},
    {"missing term", {2, -2.9, -1.4, -1.7}},
    {"missing barrier", {-0.2, -5.9, never, never}},
    {"missing statement", {never, never, -1, never}},
    {"wrong index", {never, -3.3, never, never}},
    {"superfluous statement", {never, -9.9, never, never}},
}};
constexpr double weight_of_likelihood = 0.36, weight_of_tokens = 0.93;

double worth_of(const SourceChange& change) {
  const auto found = std::find_if(worths.begin(), worths.end(),
                                  [&](const WorthOfKind& one) { return one.kind == change.kind; });
  const auto rank = static_cast<std::size_t>(change.rank);
  return found == worths.end() || rank >= ranks ? never : found->worth[rank];
}

}  // namespace

void order_changes(std::vector<SourceChange>& changes, TextModel& model) {
  constexpr int unlikely = 3;
  std::erase_if(changes, [&](const SourceChange& change) {
    return change.rank == unlikely &&
           !model.has_seen(change.start, change.start + change.length, change.by);
  });
  for (SourceChange& change : changes) {
    const auto gain = model.gain(change.start, change.start + change.length, change.by);
    change.worth +=
        worth_of(change) + weight_of_likelihood * gain.likelihood + weight_of_tokens * gain.tokens;
  }
  std::vector<std::size_t> order(changes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(changes[a].worth, changes[a].start) >
           std::pair(changes[b].worth, changes[b].start);
  });
  std::vector<SourceChange> sorted;
  sorted.reserve(changes.size());
  for (const std::size_t i : order) sorted.push_back(std::move(changes[i]));
  changes = std::move(sorted);
}

}  // namespace greta::tuner
