#include "db/lookup/expected_regret.hpp"

#include <cmath>

namespace greta::db {
namespace {

/// The mean of finite values.
class Mean {
 public:
  void add(double value) {
    if (!std::isfinite(value)) return;
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    if (count_ == 0) return std::nullopt;
    return sum_ / count_;
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace

std::optional<double> ExpectedRegret::of(KnownWinners& known, const Problem& problem,
                                         LookupOrigin origin) {
  if (origin == LookupOrigin::exact) return 1;
  if (origin == LookupOrigin::same_architecture || origin == LookupOrigin::predicted) {
    return std::nullopt;
  }
  const auto [found, is_new] = by_op_.try_emplace(problem.op);
  if (is_new) {
    Mean neighbour, fallback;
    for (const auto& cost : known.recorded_costs(problem.op)) {
      if (cost.neighbour) neighbour.add(*cost.neighbour);
      if (cost.fallback) fallback.add(*cost.fallback);
    }
    found->second = {neighbour.value(), fallback.value()};
  }
  return origin == LookupOrigin::fallback ? found->second.fallback : found->second.neighbour;
}

}  // namespace greta::db
