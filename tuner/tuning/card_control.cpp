#include "tuner/tuning/card_control.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <future>
#include <optional>

#include "tuner/evaluate/evaluator_pool.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

constexpr int turns = 7;
constexpr int launches_of_a_card = 3;
constexpr double longest_turn_s = 1;

/// The control kernel's times on one card.
struct Timed {
  Evaluator* card = nullptr;
  std::vector<double> us{};
  std::string failure{};
  std::exception_ptr error{};  ///< of the card

  double time() const { return median(us); }
};

class Control {
 public:
  Control(const std::vector<Evaluator*>& cards, const Problem& problem, bool cold,
          std::uint64_t seed)
      : problem_(problem), seed_(seed) {
    limits_.cold = cold;
    for (Evaluator* const card : cards) timed_.push_back({.card = card});
  }

  CardControl run(const std::atomic<bool>& stop) {
    warm_up();
    for (int turn = 0; turn < turns && !stop; ++turn) {
      for (Timed& one : timed_) take_turn(one);
    }
    return judge();
  }

 private:
  // Inputs and references are made on all cards at once. These times are not used.
  void warm_up() {
    std::vector<std::future<void>> running;
    for (Timed& one : timed_) {
      running.push_back(std::async(std::launch::async, [&] { take_turn(one); }));
    }
    for (auto& one : running) one.get();
    for (Timed& one : timed_) one.us.clear();
  }

  void take_turn(Timed& one) {
    if (!one.failure.empty()) return;
    const Operation& operation = one.card->catalog().at(problem_.op);
    const Config config = operation.default_config(problem_, one.card->device());
    try {
      const Rounds rounds = one.card->time_rounds(problem_, {config}, launches_of_a_card,
                                                  longest_turn_s, seed_, limits_);
      if (rounds.failure) {
        one.failure = rounds.failure->message;
      } else if (!rounds.us.front().empty()) {  // else the device's speed drifted
        one.us.push_back(median(rounds.us.front()));
      }
    } catch (const Error& error) {
      if (!is_of_the_card(error.status())) throw;
      one.failure = error.what();
      one.error = std::current_exception();
    }
  }

  static bool alike(const Timed& a, const Timed& b) {
    if (a.us.empty() || b.us.empty()) return &a == &b;
    return std::max(a.time(), b.time()) <= (1 + card_tolerance) * std::min(a.time(), b.time());
  }

  std::size_t count_alike(const Timed& one) const {
    return static_cast<std::size_t>(
        std::count_if(timed_.begin(), timed_.end(),
                      [&](const Timed& other) { return !other.error && alike(one, other); }));
  }

  CardControl judge() const {
    const Timed* best = nullptr;
    for (const Timed& one : timed_) {
      if (one.error) continue;
      if (best == nullptr || count_alike(one) > count_alike(*best)) best = &one;
    }
    if (best == nullptr) std::rethrow_exception(timed_.front().error);
    CardControl control;
    std::string times;
    for (const Timed& one : timed_) {
      const std::string id = one.card->device().id();
      if (!one.us.empty()) {
        times += fmt::format("{}{} {}", times.empty() ? "" : ", ", id, format_time(one.time()));
      }
      if (!one.error && alike(*best, one)) {
        control.alike.push_back(one.card);
      } else {
        control.notes.push_back(
            fmt::format("{} does not share the search: {}", id, difference(*best, one)));
      }
    }
    if (!times.empty()) {
      control.notes.insert(
          control.notes.begin(),
          fmt::format("the default configuration on each card, in turns: {}", times));
    }
    return control;
  }

  static std::string difference(const Timed& best, const Timed& one) {
    if (!one.failure.empty()) return one.failure;
    if (one.us.empty() || best.us.empty()) return "its speed drifted, so that it was not compared";
    return fmt::format("its time is {:.3f} times that on {}, where {:.0f} % are allowed",
                       one.time() / best.time(), best.card->device().id(), 100 * card_tolerance);
  }

  const Problem& problem_;
  std::uint64_t seed_;
  TrialLimits limits_;
  std::vector<Timed> timed_;
};

}  // namespace

CardControl compare_cards(const std::vector<Evaluator*>& cards, const Problem& problem, bool cold,
                          std::uint64_t seed, const std::atomic<bool>& stop) {
  if (cards.size() == 1) return {cards, {}};
  return Control(cards, problem, cold, seed).run(stop);
}

}  // namespace greta::tuner
