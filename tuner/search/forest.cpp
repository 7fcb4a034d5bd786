#include "tuner/search/factories.hpp"
#include "tuner/search/gaussian_process.hpp"
#include "tuner/search/model_search.hpp"
#include "tuner/search/random_forest.hpp"

namespace greta::tuner {
namespace {

/// Model-based search with a random forest, as in SMAC.
class Forest : public ModelSearch {
 public:
  using ModelSearch::ModelSearch;

 private:
  Pick pick(const Lessons& lessons, const std::vector<Candidate>& candidates,
            double best) override {
    const RandomForest model({.trees = option("trees")}, lessons.points, lessons.values, random());
    double greatest = -1;
    Pick chosen;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto guess = model.guess(candidates[i].point);
      double improvement =
          expected_improvement({guess.mean, guess.deviation}, best - candidates[i].expected);
      if (improvement <= greatest) continue;  // no chance is above 1
      improvement *= chance(candidates[i].point);
      if (improvement <= greatest) continue;
      greatest = improvement;
      chosen = {i, guess.mean + candidates[i].expected};
    }
    return chosen;
  }
};

}  // namespace

std::unique_ptr<Strategy> create_forest(const SearchProblem& problem) {
  return std::make_unique<Forest>(problem);
}

}  // namespace greta::tuner
