#include "tuner/search/random_forest.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "kernels/model/random.hpp"

namespace greta::tuner {

class RandomForest::Grower {
 public:
  Grower(const Options& options, const Points& points, const std::vector<double>& values,
         std::mt19937_64& random)
      : options_(options), points_(points), values_(values), random_(random) {}

  Tree grow() {
    members_.clear();
    for (std::size_t i = 0; i < points_.size(); ++i) {
      members_.push_back(uniform_below(random_, points_.size()));
    }
    tree_.assign(1, {});
    grow_node(0, 0, members_.size());
    return std::move(tree_);
  }

 private:
  struct Split {
    std::size_t column = 0;
    float threshold = 0;
    double squares = 0;  ///< sum of squared deviations that it removes
  };

  void grow_node(std::size_t node, std::size_t first, std::size_t last) {
    double sum = 0;
    for (std::size_t i = first; i < last; ++i) sum += values_[members_[i]];
    tree_[node].value = sum / static_cast<double>(last - first);
    if (last - first < options_.least_split) return;
    const auto split = best_split(first, last, sum);
    if (!split) return;
    const auto begin = members_.begin();
    const auto middle = std::partition(
        begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last),
        [&](std::size_t member) { return points_[member][split->column] < split->threshold; });
    const auto child = tree_.size();
    tree_[node].column = split->column;
    tree_[node].threshold = split->threshold;
    tree_[node].child = static_cast<std::uint32_t>(child);
    tree_.resize(child + 2);
    const auto place = static_cast<std::size_t>(middle - begin);
    grow_node(child, first, place);
    grow_node(child + 1, place, last);
  }

  std::optional<Split> best_split(std::size_t first, std::size_t last, double sum) {
    std::optional<Split> best;
    const std::size_t columns = points_.front().size();
    const auto count = static_cast<double>(last - first);
    for (std::size_t column = 0; column < columns; ++column) {
      if (uniform(random_) >= options_.column_share) continue;
      sorted_.clear();
      for (std::size_t i = first; i < last; ++i) {
        sorted_.emplace_back(points_[members_[i]][column], values_[members_[i]]);
      }
      std::sort(sorted_.begin(), sorted_.end());
      double left = 0;
      for (std::size_t i = 1; i < sorted_.size(); ++i) {
        left += sorted_[i - 1].second;
        if (sorted_[i].first == sorted_[i - 1].first) continue;
        const auto below = static_cast<double>(i);
        const double right = sum - left;
        const double squares =
            left * left / below + right * right / (count - below) - sum * sum / count;
        if (squares > (best ? best->squares : 1e-12)) {
          best = Split{column, (sorted_[i].first + sorted_[i - 1].first) / 2, squares};
        }
      }
    }
    return best;
  }

  const Options& options_;
  const Points& points_;
  const std::vector<double>& values_;
  std::mt19937_64& random_;
  std::vector<std::size_t> members_;
  std::vector<std::pair<float, double>> sorted_;
  Tree tree_;
};

RandomForest::RandomForest(const Options& options, const Points& points,
                           const std::vector<double>& values, std::mt19937_64& random) {
  Grower grower(options, points, values, random);
  for (std::size_t i = 0; i < options.trees; ++i) trees_.push_back(grower.grow());
}

RandomForest::Guess RandomForest::guess(const std::vector<float>& point) const {
  double sum = 0, squares = 0;
  for (const Tree& tree : trees_) {
    const Node* node = &tree.front();
    while (node->child != 0) {
      node = &tree[node->child + (point[node->column] < node->threshold ? 0 : 1)];
    }
    sum += node->value;
    squares += node->value * node->value;
  }
  const auto count = static_cast<double>(trees_.size());
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(squares / count - mean * mean, 1e-8))};
}

}  // namespace greta::tuner
