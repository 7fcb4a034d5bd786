#include <cmath>

#include "kernels/model/random.hpp"
#include "tuner/search/classic.hpp"
#include "tuner/search/factories.hpp"

namespace greta::tuner {
namespace {

/// Basin hopping, also called iterated local search: descends to a local optimum by trying all
/// neighbours in random order, moves to each better one, then restarts from the best found with
/// several parameters changed. Source: Wales, Doye, "Global Optimization by Basin-Hopping", J.
/// Phys. Chem. A 1997.
class Basin : public Classic {
 public:
  using Classic::Classic;

 private:
  std::optional<Choice> propose(std::uint64_t first) override {
    if (static_cast<double>(first) < option("design") || !current_) return random_choice();
    if (const auto near = next_neighbour()) return near;
    // All neighbours were given. While results are missing, one of them may still be better.
    return hop();
  }

  void learn(const Result& result) override {
    if (std::isinf(result.cost)) return;
    if (!best_ || result.cost < best_->cost) best_ = result;
    const bool landed = hopped_to_ == result.choice;
    if (!current_ || landed || result.cost < current_->cost) {
      current_ = result;
      neighbours_.reset();
    }
    if (landed) hopped_to_.reset();
  }

  std::optional<Choice> next_neighbour() {
    if (!neighbours_) neighbours_ = space().neighbours(current_->choice, false);
    while (!neighbours_->empty()) {
      std::swap((*neighbours_)[below(neighbours_->size())], neighbours_->back());
      const Choice near = std::move(neighbours_->back());
      neighbours_->pop_back();
      if (untried(near)) return near;
    }
    return std::nullopt;
  }

  std::optional<Choice> hop() {
    const auto changes = count_option("changes");
    for (int attempt = 0; attempt < most_hops; ++attempt) {
      Choice changed = best_->choice;
      for (std::size_t i = 0; i < changes; ++i) changed = random_move(changed).value_or(changed);
      if (!untried(changed)) continue;
      hopped_to_ = changed;
      return changed;
    }
    return std::nullopt;
  }

  static constexpr int most_hops = 50;
  std::optional<Result> best_, current_;
  std::optional<std::vector<Choice>> neighbours_;  ///< of the current one that were not given
  std::optional<Choice> hopped_to_;
};

}  // namespace

std::unique_ptr<Strategy> create_basin(const SearchProblem& problem) {
  return std::make_unique<Basin>(problem);
}

}  // namespace greta::tuner
