#include "tuner/search/enumeration.hpp"
#include "tuner/search/factories.hpp"

namespace greta::tuner {
namespace {

/// Tries every configuration in index order.
class Exhaustive : public Strategy {
 public:
  explicit Exhaustive(const SearchProblem& problem)
      : count_(problem.space->count()), untried_(problem) {}

  std::optional<Choice> ask() override {
    if (auto choice = untried_.next_seed()) return choice;
    while (next_ < count_) {
      if (auto choice = untried_.take(next_++)) return choice;
    }
    return std::nullopt;
  }

  void tell(const Choice& /*choice*/, const Trial& /*trial*/) override {}

 private:
  std::uint64_t count_;
  std::uint64_t next_ = 0;
  Untried untried_;
};

}  // namespace

std::unique_ptr<Strategy> create_exhaustive(const SearchProblem& problem) {
  return std::make_unique<Exhaustive>(problem);
}

}  // namespace greta::tuner
