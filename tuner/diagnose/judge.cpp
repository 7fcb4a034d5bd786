#include "tuner/diagnose/judge.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace greta::tuner {
namespace {

constexpr double least_explained = 0.05;
/// Sums may be added in another order than the reference's.
constexpr double bounds_of_agreement = 4;
/// NaN spreads, so that many causes predict it where it is.
constexpr double share_of_nan = 0.5;
constexpr std::size_t least_numbers = 3;
/// Wrong elements that prove a fitted number.
constexpr std::size_t elements_of_number = 2;

double square(double x) {
  return std::isfinite(x) ? std::min(x * x, 1e200) : 0;
}

}  // namespace

Cause Judge::compare(std::string kind, std::string words, const Prediction& predicted) const {
  double matched = 0;
  std::size_t changed = 0, changed_wrong = 0, matched_numbers = 0, nan = 0, same_nan = 0,
              said_nan = 0;
  double errors = 0, remaining = 0;
  for (std::size_t o = 0; o < predicted.size(); ++o) {
    const ExaminedOutput& output = evidence_.outputs()[o];
    for (std::size_t i = 0; i < output.want.size(); ++i) {
      const Expected &want = output.want[i], &said = predicted[o][i];
      const double within = bounds_of_agreement * (want.bound + said.bound);
      const bool wrong = output.wrong[i] != 0;
      if (!agrees(want.value, said.value, within)) {
        ++changed;
        changed_wrong += wrong ? 1 : 0;
      }
      nan += wrong && std::isnan(output.got[i]) ? 1 : 0;
      if (std::isnan(said.value) && !std::isnan(want.value)) {
        ++said_nan;
        same_nan += wrong && std::isnan(output.got[i]) ? 1 : 0;
      }
      if (!wrong) continue;
      const double error = output.got[i] - want.value, rest = output.got[i] - said.value;
      const bool closer = std::isnan(rest) || !std::isfinite(error) || rest == 0 ||
                          std::abs(rest) < 0.5 * std::abs(error);
      if (agrees(output.got[i], said.value, within) && closer && !std::isnan(said.value))
        ++matched_numbers;
      errors += square(error);
      remaining += square(rest);
    }
  }
  // Exactly the elements that are NaN, beside numbers that agree, are no coincidence.
  const bool exact = matched_numbers >= least_numbers && same_nan == nan && said_nan == nan;
  matched = static_cast<double>(matched_numbers) +
            (exact ? 1 : share_of_nan) * static_cast<double>(same_nan);
  Cause cause{.kind = std::move(kind), .words = std::move(words)};
  const auto all = static_cast<double>(evidence_.wrong());
  cause.explained = all > 0 ? matched / all : 0;
  cause.precision =
      changed == 0 ? 1 : static_cast<double>(changed_wrong) / static_cast<double>(changed);
  cause.residual = errors > 0 ? std::sqrt(remaining / errors) : 0;
  cause.score = cause.explained * (0.8 + 0.2 * cause.precision);
  return cause;
}

void Judge::offer(std::string kind, std::string words, const Prediction& predicted, double weight) {
  ++tried_;
  Cause cause = compare(std::move(kind), std::move(words), predicted);
  if (cause.explained < least_explained) return;
  cause.score *= weight;
  causes_.push_back(std::move(cause));
}

void Judge::offer_fitted(std::string kind, std::string words, const Prediction& predicted,
                         std::size_t numbers, double weight) {
  if (evidence_.wrong() < elements_of_number * numbers) return;
  offer(std::move(kind), std::move(words), predicted, weight);
}

void Judge::offer_inputs(std::string kind, std::string words, const std::vector<HostTensor>& inputs,
                         double weight) {
  offer_problem(std::move(kind), std::move(words), evidence_.problem(), inputs, weight);
}

void Judge::offer_problem(std::string kind, std::string words, const Problem& problem,
                          const std::vector<HostTensor>& inputs, double weight) {
  if (!time_left()) return hurry();
  const auto predicted = evidence_.recompute(problem, inputs);
  if (predicted) offer(std::move(kind), std::move(words), *predicted, weight);
}

std::vector<Cause> Judge::ranked() const {
  std::vector<Cause> sorted = causes_;
  for (Cause& cause : sorted) {
    if (doubted_.contains(cause.kind)) cause.score *= doubt_factor_;
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Cause& a, const Cause& b) { return a.score > b.score; });
  std::set<std::string> named;
  std::erase_if(sorted, [&](const Cause& cause) { return !named.insert(cause.words).second; });
  return sorted;
}

}  // namespace greta::tuner
