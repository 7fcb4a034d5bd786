#include "tuner/search/classic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/model/random.hpp"

namespace greta::tuner {

Classic::Classic(const SearchProblem& problem)
    : space_(*problem.space),
      options_(problem.options),
      budget_(problem.budget > 0 ? static_cast<double>(problem.budget) : 500),
      untried_(problem),
      random_(problem.seed) {
  for (std::uint32_t variant = 0; variant < space_.alternatives().size(); ++variant) {
    if (space_.count_at(variant) > 0) variants_.push_back(variant);
  }
}

std::optional<Choice> Classic::ask() {
  ++asked_;
  if (auto seed = untried_.next_seed()) return seed;
  if (!variants_.empty()) {
    if (const auto proposed = propose(asked_ - 1)) {
      if (auto taken = untried_.take(space_.index(*proposed).value())) return taken;
    }
  }
  return untried_.next_random();
}

void Classic::tell(const Choice& choice, const Trial& trial) {
  const Cost cost =
      trial.ok() ? std::log(trial.measurement.median_us) : std::numeric_limits<double>::infinity();
  known_[choice] = cost;
  learn({choice, cost});
}

double Classic::option(std::string_view name) const {
  const auto found = options_.find(name);
  if (found == options_.end()) throw Error("strategy without its option " + std::string(name));
  return found->second;
}

std::size_t Classic::count_option(std::string_view name) const {
  return static_cast<std::size_t>(option(name));
}

std::size_t Classic::below(std::size_t bound) {
  return static_cast<std::size_t>(uniform_below(random_, bound));
}

bool Classic::untried(const Choice& choice) const {
  const auto index = space_.index(choice);
  return index && untried_.has(*index);
}

std::optional<Classic::Cost> Classic::cost(const Choice& choice) const {
  const auto found = known_.find(choice);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

Choice Classic::random_choice() {
  return space_.sample_at(variants_[below(variants_.size())], random_);
}

std::optional<Choice> Classic::random_move(Choice from) {
  const auto& parameters = space_.alternatives()[from.variant].parameters;
  if (parameters.empty()) return std::nullopt;
  const std::size_t parameter = below(parameters.size());
  from.values[parameter] = static_cast<std::uint16_t>(below(parameters[parameter].values.size()));
  return space_.index(from) ? std::optional(from) : std::nullopt;
}

double Classic::progress() const {
  return std::min(1.0, static_cast<double>(asked_) / budget_);
}

ValueOrder::ValueOrder(const Space& space) {
  for (const Alternative& alternative : space.alternatives()) {
    orders_.emplace_back();
    for (const Parameter& parameter : alternative.parameters) {
      Order order;
      order.value.resize(parameter.values.size());
      std::iota(order.value.begin(), order.value.end(), std::uint16_t{0});
      std::sort(order.value.begin(), order.value.end(), [&](std::size_t a, std::size_t b) {
        return parameter.values[a] < parameter.values[b];
      });
      order.place.resize(order.value.size());
      for (std::size_t i = 0; i < order.value.size(); ++i) {
        order.place[order.value[i]] = static_cast<std::uint16_t>(i);
      }
      orders_.back().push_back(std::move(order));
    }
  }
}

std::size_t ValueOrder::count(std::uint32_t variant, std::size_t parameter) const {
  return orders_[variant][parameter].value.size();
}

std::size_t ValueOrder::place(std::uint32_t variant, std::size_t parameter,
                              std::uint16_t value) const {
  return orders_[variant][parameter].place[value];
}

std::uint16_t ValueOrder::value(std::uint32_t variant, std::size_t parameter,
                                std::size_t place) const {
  return orders_[variant][parameter].value[place];
}

}  // namespace greta::tuner
