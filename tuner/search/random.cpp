#include "tuner/search/enumeration.hpp"
#include "tuner/search/factories.hpp"

namespace greta::tuner {
namespace {

/// Samples uniformly from the whole space, without replacement.
class Random : public Strategy {
 public:
  explicit Random(const SearchProblem& problem) : untried_(problem) {}

  std::optional<Choice> ask() override {
    if (auto choice = untried_.next_seed()) return choice;
    return untried_.next_random();
  }

  void tell(const Choice& /*choice*/, const Trial& /*trial*/) override {}

 private:
  Untried untried_;
};

}  // namespace

std::unique_ptr<Strategy> create_random(const SearchProblem& problem) {
  return std::make_unique<Random>(problem);
}

}  // namespace greta::tuner
