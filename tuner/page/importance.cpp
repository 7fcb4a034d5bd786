#include "tuner/page/importance.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "tuner/search/random_forest.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t most_rows = 1000;  // that a forest is fitted to
constexpr std::size_t most_combinations = 4096;
constexpr double least_variance = 1e-12;
constexpr std::size_t least_rows = 10;
constexpr std::size_t held_out = 5;  // one of as many rows

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares / static_cast<double>(values.size());
}

/// Returns the values that a parameter has, ascending.
std::vector<float> values_of(const Rows& rows, std::size_t column) {
  std::set<float> values;
  for (const auto& row : rows)
    if (row[column] != absent_coordinate) values.insert(row[column]);
  return {values.begin(), values.end()};
}

/// Returns at most `most` items, evenly spaced.
template <typename T>
std::vector<T> spaced(const std::vector<T>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<T> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
  return some;
}

/// Rows that have the same parameters, and predictions of combinations of the values that these
/// rows have: of all combinations, or of a sample in which every value is equally frequent.
class Group {
 public:
  Group(const Rows& rows, std::size_t all_rows, const Predict& predict)
      : weight(static_cast<double>(rows.size()) / static_cast<double>(all_rows)),
        places_(rows.front().size()),
        values_(rows.front().size()) {
    std::size_t combinations = 1;
    for (std::size_t column = 0; column < values_.size(); ++column) {
      std::set<float> values;
      for (const auto& row : rows) values.insert(row[column]);
      values_[column] = {values.begin(), values.end()};
      combinations = std::min(most_combinations + 1, combinations * values.size());
    }
    sampled_ = combinations > most_combinations;
    place(sampled_ ? most_combinations : combinations);
    std::vector<float> row(values_.size());
    predictions_.resize(places_.front().size());
    for (std::size_t i = 0; i < predictions_.size(); ++i) {
      for (std::size_t column = 0; column < row.size(); ++column)
        row[column] = values_[column][places_[column][i]];
      predictions_[i] = predict(row);
    }
    mean = mean_of(predictions_);
    variance = variance_of(predictions_);
  }

  /// Returns the variance of the means of one parameter's values.
  double explained(std::size_t column) const {
    return between(places_[column], values_[column].size());
  }
  /// Returns the variance of the means of pairs of values, beyond that of each parameter.
  double beyond(std::size_t a, std::size_t b) const {
    std::vector<std::size_t> cells(predictions_.size());
    for (std::size_t i = 0; i < cells.size(); ++i)
      cells[i] = places_[a][i] * values_[b].size() + places_[b][i];
    const double both = between(cells, values_[a].size() * values_[b].size());
    return std::max(0.0, both - explained(a) - explained(b));
  }

  const double weight;  ///< share of the rows
  double mean = 0, variance = 0;

 private:
  /// Chooses the place of each column's value in each combination.
  void place(std::size_t count) {
    std::mt19937_64 random(1);  // a report of the same database is the same
    std::size_t period = 1;
    for (std::size_t column = 0; column < values_.size(); ++column) {
      auto& places = places_[column];
      for (std::size_t i = 0; i < count; ++i)
        places.push_back((sampled_ ? i : i / period) % values_[column].size());
      if (sampled_) std::shuffle(places.begin(), places.end(), random);
      period *= values_[column].size();
    }
  }

  /// Returns the variance of the means of cells. In a sample, means differ by chance as well: what
  /// is expected of that, by the variance within cells, is subtracted.
  double between(const std::vector<std::size_t>& cells, std::size_t count) const {
    std::vector<double> sums(count), numbers(count);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      sums[cells[i]] += predictions_[i];
      ++numbers[cells[i]];
    }
    double squares = 0, used = 0;
    for (std::size_t cell = 0; cell < count; ++cell) {
      if (numbers[cell] == 0) continue;
      const double far = sums[cell] / numbers[cell] - mean;
      squares += numbers[cell] * far * far;
      ++used;
    }
    const auto all = static_cast<double>(cells.size());
    if (!sampled_) return squares / all;
    if (used >= all) return 0;
    const double within = (variance * all - squares) / (all - used);
    return std::max(0.0, squares - (used - 1) * within) / all;
  }

  bool sampled_ = false;
  std::vector<std::vector<std::size_t>> places_;  // [column][combination]
  std::vector<std::vector<float>> values_;        // [column]
  std::vector<double> predictions_;
};

/// Computes the parts of a decomposition.
class Decomposition {
 public:
  Decomposition(const Rows& rows, const Predict& predict, std::optional<std::size_t> variant) {
    std::map<std::vector<float>, Rows> alike;
    for (const auto& row : rows) {
      std::vector<float> has(row.size());
      for (std::size_t column = 0; column < row.size(); ++column)
        has[column] = column == variant ? row[column] : row[column] == absent_coordinate ? 0 : 1;
      alike[has].push_back(row);
    }
    for (const auto& [has, group] : alike) {
      groups_.emplace_back(group, rows.size(), predict);
      if (variant) variants_.push_back(has[*variant]);
    }
    double mean = 0;
    for (const Group& group : groups_) mean += group.weight * group.mean;
    for (const Group& group : groups_)
      variance_ += group.weight * (group.variance + std::pow(group.mean - mean, 2));
  }

  double marginal(std::size_t column) const {
    return share([&](const Group& group) { return group.explained(column); });
  }

  /// Returns the share of the variant, whose values are not exchanged.
  double between() const {
    std::map<float, std::pair<double, double>> sums;  // weights and weighted means
    double mean = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      auto& [weight, sum] = sums[variants_[i]];
      weight += groups_[i].weight;
      sum += groups_[i].weight * groups_[i].mean;
      mean += groups_[i].weight * groups_[i].mean;
    }
    double variance = 0;
    for (const auto& [value, sum] : sums)
      variance += sum.first * std::pow(sum.second / sum.first - mean, 2);
    return share_of(variance);
  }

  /// Returns what two parameters explain beyond what each explains by itself.
  double beyond(std::size_t a, std::size_t b) const {
    return share([&](const Group& group) { return group.beyond(a, b); });
  }

 private:
  template <typename Part>
  double share(Part part) const {
    double variance = 0;
    for (const Group& group : groups_) variance += group.weight * part(group);
    return share_of(variance);
  }
  double share_of(double variance) const {
    return variance_ > least_variance ? std::min(1.0, variance / variance_) : 0;
  }

  std::vector<Group> groups_;
  std::vector<float> variants_;  // by group, if there is a column of them
  double variance_ = 0;
};

RandomForest forest_of(const Rows& rows, const std::vector<double>& values) {
  std::mt19937_64 random(1);  // a report of the same database is the same
  return RandomForest({}, rows, values, random);
}

/// Returns the share of the variance of rows that were held out.
double fit_of(const Rows& rows, const std::vector<double>& values) {
  Rows known, asked;
  std::vector<double> known_values, asked_values;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool held = i % held_out == held_out - 1;
    (held ? asked : known).push_back(rows[i]);
    (held ? asked_values : known_values).push_back(values[i]);
  }
  const RandomForest forest = forest_of(known, known_values);
  double squares = 0;
  for (std::size_t i = 0; i < asked.size(); ++i)
    squares += std::pow(forest.guess(asked[i]).mean - asked_values[i], 2);
  const double variance = variance_of(asked_values);
  return variance > least_variance ? 1 - squares / static_cast<double>(asked.size()) / variance : 0;
}

}  // namespace

Importance importance_of(const Rows& rows, const Predict& predict,
                         std::optional<std::size_t> variant, std::size_t most_paired) {
  Importance result;
  if (rows.empty()) return result;
  const Decomposition decomposition(rows, predict, variant);
  for (std::size_t column = 0; column < rows.front().size(); ++column)
    result.marginals.push_back({values_of(rows, column), column == variant
                                                             ? decomposition.between()
                                                             : decomposition.marginal(column)});
  std::vector<std::size_t> order(result.marginals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return result.marginals[a].share > result.marginals[b].share;
  });
  std::erase_if(order, [&](std::size_t one) {
    return one == variant || result.marginals[one].values.size() < 2;
  });
  if (order.size() > most_paired) order.resize(most_paired);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const std::size_t a = order[i], b = order[j];
      result.pairs.push_back({a, b, decomposition.beyond(a, b)});
    }
  }
  std::stable_sort(result.pairs.begin(), result.pairs.end(),
                   [](const PairEffect& a, const PairEffect& b) { return a.share > b.share; });
  return result;
}

MeasuredImportance measured_importance(const Rows& rows, const std::vector<double>& times,
                                       std::optional<std::size_t> variant) {
  std::vector<double> logs;
  for (const double time : times) logs.push_back(std::log(time));
  const Rows used = spaced(rows, most_rows);
  const std::vector<double> values = spaced(logs, most_rows);
  if (used.size() < least_rows) {
    const Predict nothing = [](const std::vector<float>&) { return 0.0; };
    return {.importance = importance_of(used, nothing, variant)};
  }
  const RandomForest forest = forest_of(used, values);
  const Predict predict = [&](const std::vector<float>& row) { return forest.guess(row).mean; };
  return {.importance = importance_of(used, predict, variant), .fit = fit_of(used, values)};
}

}  // namespace greta::tuner
