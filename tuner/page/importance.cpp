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
constexpr std::size_t most_means = 128;  // rows that a mean is taken over
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

/// Returns at most `most` items, evenly spaced.
template <typename T>
std::vector<T> spaced(const std::vector<T>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<T> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * all.size() / most]);
  return some;
}

/// Computes the parts of a decomposition.
class Decomposition {
 public:
  Decomposition(const Rows& rows, const Predict& predict)
      : rows_(spaced(rows, most_means)), predict_(predict) {
    std::vector<double> predictions;
    for (const auto& row : rows_) predictions.push_back(predict_(row));
    variance_ = variance_of(predictions);
  }

  Marginal marginal(const Rows& all, std::size_t column) const {
    std::set<float> values;
    for (const auto& row : all)
      if (row[column] != absent_coordinate) values.insert(row[column]);
    Marginal result{.values = {values.begin(), values.end()}, .means = {}};
    double present = 0;
    for (const auto& row : rows_) present += row[column] != absent_coordinate ? 1 : 0;
    if (present == 0) {
      result.values.clear();
      return result;
    }
    for (const float value : result.values) {
      double sum = 0;
      for (auto row : rows_) {
        if (row[column] == absent_coordinate) continue;
        row[column] = value;
        sum += predict_(row);
      }
      result.means.push_back(sum / present);
    }
    result.share = share(variance_of(result.means), present);
    return result;
  }

  /// Returns the effect of a column whose values are not exchanged.
  Marginal between(std::size_t column) const {
    std::map<float, std::vector<double>> groups;
    for (const auto& row : rows_) groups[row[column]].push_back(predict_(row));
    std::vector<double> means_of_rows;
    Marginal result{.values = {}, .means = {}};
    for (const auto& [value, predictions] : groups) {
      result.values.push_back(value);
      result.means.push_back(mean_of(predictions));
      means_of_rows.insert(means_of_rows.end(), predictions.size(), result.means.back());
    }
    result.share = share(variance_of(means_of_rows), static_cast<double>(rows_.size()));
    return result;
  }

  /// Returns what two parameters explain beyond the sum of their marginals.
  double beyond(std::size_t a, const Marginal& of_a, std::size_t b, const Marginal& of_b) const {
    std::vector<double> rest;
    double present = 0;
    for (std::size_t i = 0; i < of_a.values.size(); ++i) {
      for (std::size_t j = 0; j < of_b.values.size(); ++j) {
        double sum = 0;
        present = 0;
        for (auto row : rows_) {
          if (row[a] == absent_coordinate || row[b] == absent_coordinate) continue;
          row[a] = of_a.values[i];
          row[b] = of_b.values[j];
          sum += predict_(row);
          ++present;
        }
        if (present == 0) return 0;
        rest.push_back(sum / present - of_a.means[i] - of_b.means[j]);
      }
    }
    return share(variance_of(rest), present);
  }

 private:
  double share(double variance, double present) const {
    if (!(variance_ > 1e-12)) return 0;
    return std::min(1.0, variance / variance_ * present / static_cast<double>(rows_.size()));
  }

  Rows rows_;
  const Predict& predict_;
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
  return variance > 1e-12 ? 1 - squares / static_cast<double>(asked.size()) / variance : 0;
}

}  // namespace

Importance importance_of(const Rows& rows, const Predict& predict,
                         std::optional<std::size_t> variant, std::size_t most_paired) {
  Importance result;
  if (rows.empty()) return result;
  const Decomposition decomposition(rows, predict);
  for (std::size_t column = 0; column < rows.front().size(); ++column)
    result.marginals.push_back(column == variant ? decomposition.between(column)
                                                 : decomposition.marginal(rows, column));
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
      result.pairs.push_back(
          {a, b, decomposition.beyond(a, result.marginals[a], b, result.marginals[b])});
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
