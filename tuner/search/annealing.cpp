#include <cmath>

#include "kernels/model/random.hpp"
#include "tuner/search/classic.hpp"
#include "tuner/search/factories.hpp"

namespace greta::tuner {
namespace {

/// Simulated annealing: walks to random neighbours, to worse ones with a probability that decreases
/// with the used budget. Source: Kirkpatrick, Gelatt, Vecchi, "Optimization by Simulated
/// Annealing", Science 1983.
class Annealing : public Classic {
 public:
  using Classic::Classic;

 private:
  std::optional<Choice> propose(std::uint64_t) override {
    if (!current_) return random_choice();
    for (int attempt = 0; attempt < most_moves; ++attempt) {
      const auto near = random_move(current_->choice);
      if (!near) continue;
      if (untried(*near)) return near;
      if (const auto known = cost(*near)) consider({*near, *known});  // a move that costs no trial
    }
    return std::nullopt;
  }

  void learn(const Result& result) override { consider(result); }

  void consider(const Result& next) {
    if (std::isinf(next.cost)) return;
    if (!current_ || next.cost <= current_->cost ||
        uniform(random()) < std::exp((current_->cost - next.cost) / temperature())) {
      current_ = next;
    }
  }

  /// In units of the logarithm of the time: 0.1 accepts 10 % slower ones often.
  double temperature() const {
    const double hot = option("hot");
    const double cold = option("cold");
    return hot * std::pow(cold / hot, progress());
  }

  static constexpr int most_moves = 200;
  std::optional<Result> current_;
};

}  // namespace

std::unique_ptr<Strategy> create_annealing(const SearchProblem& problem) {
  return std::make_unique<Annealing>(problem);
}

}  // namespace greta::tuner
