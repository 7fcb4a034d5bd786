#include "db/regret.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "db/distance.hpp"
#include "kernels/chains/chains.hpp"

namespace greta::db {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns whether the winner of another shape stands for the default of a problem.
bool implies_default(const Catalog& catalog, const Problem& problem, const Winner& winner) {
  const auto* kernel = catalog.find(problem.op);
  return kernel != nullptr && implies_default(*kernel, winner);
}

/// Returns whether a winner serves other shapes whatever it gains and loads: of operations whose
/// predictions are compared instead, and of chains.
bool carries_each_winner(const Operation& operation) {
  return operation.untuned == Operation::Untuned::best_predicted || is_chain(operation.name);
}

/// Returns the widest loads that a problem permits in any configuration of a variant: the greatest
/// VEC that satisfies the constraints on it alone, such as the alignment of rows.
int widest_loads(const Instance& instance, std::string_view variant) {
  int widest = 0;
  for (const Alternative& alternative : instance.alternatives()) {
    if (alternative.variant != variant) continue;
    for (const Parameter& parameter : alternative.parameters) {
      if (parameter.name != "VEC") continue;
      for (const int vec : parameter.values) {
        const Config one{alternative.variant, {{"VEC", vec}}};
        const bool permitted =
            std::ranges::all_of(alternative.constraints, [&](const Constraint& constraint) {
              const auto& of = constraint.condition.parameters();
              return of.size() != 1 || of.front() != "VEC" || constraint.condition.holds(one);
            });
        if (permitted) widest = std::max(widest, vec);
      }
    }
  }
  return widest;
}

}  // namespace

bool implies_default(const Operation& operation, const Winner& winner) {
  if (winner.is_default) return true;
  if (carries_each_winner(operation)) return false;
  return winner.default_us > 0 && winner.speedup_low < least_carried_speedup;
}

Config carried_over(const Catalog& catalog, const Winner& winner, const Problem& problem,
                    const DeviceInfo& device) {
  const auto* kernel = catalog.find(problem.op);
  if (kernel == nullptr) return winner.config;
  if (implies_default(*kernel, winner)) return kernel->default_config(problem, device);
  const auto usable = catalog.usable(problem, device, winner.config);
  return usable ? usable->config : winner.config;
}

bool loads_narrower(const Catalog& catalog, const StoredWinner& winner, const Config& config,
                    const Problem& problem, const DeviceInfo& device) {
  const Operation& operation = catalog.at(problem.op);
  if (carries_each_winner(operation) || implies_default(operation, winner.winner)) return false;
  if (!config.has("VEC")) return false;
  const int own = widest_loads({operation, winner.problem, device}, config.variant);
  return config["VEC"] == own && own < widest_loads({operation, problem, device}, config.variant);
}

bool serves(const Catalog& catalog, const StoredWinner& winner, const StoredWinner& result) {
  if (implies_default(catalog, result.problem, winner.winner)) return true;
  const auto usable = catalog.usable(result.problem, result.device, winner.winner.config);
  return usable && !loads_narrower(catalog, winner, usable->config, result.problem, result.device);
}

const StoredWinner* nearest_neighbour(const Catalog& catalog, const StoredWinner& result,
                                      const std::vector<StoredWinner>& winners) {
  const StoredWinner* nearest = nullptr;
  double least = std::nextafter(most_shape_distance, infinity);
  for (const auto& other : winners) {
    const double distance = shape_distance(result.problem, other.problem);
    const bool nearer = distance < least || (nearest != nullptr && distance == least &&
                                             other.problem.dims < nearest->problem.dims);
    if (distance == 0 || !nearer || other.winner.cold != result.winner.cold ||
        other.device.fingerprint() != result.device.fingerprint() ||
        !serves(catalog, other, result)) {
      continue;
    }
    nearest = &other;
    least = distance;
  }
  return nearest;
}

std::optional<Regret> recorded_regret(const Catalog& catalog, const TunedDb& db,
                                      const StoredWinner& result, const StoredWinner& neighbour) {
  Regret regret;
  regret.neighbour = neighbour.problem.dims_text();
  const Config config = carried_over(catalog, neighbour.winner, result.problem, result.device);
  if (config == result.winner.config) return regret;
  for (const auto& tie : result.winner.ties) {
    if (tie.config != config) continue;
    regret.ratio = tie.ratio_to_winner;
    regret.source = Regret::Source::tie;
    return regret;
  }
  if (implies_default(catalog, result.problem, neighbour.winner) && result.winner.speedup > 0) {
    regret.ratio = result.winner.speedup;
    regret.source = Regret::Source::measured;
    return regret;
  }
  const auto here = db.recorded_us(result, config);
  const auto best = db.recorded_us(result, result.winner.config);
  if (!here || !best) return std::nullopt;
  regret.ratio = *here / *best;
  regret.source = Regret::Source::trials;
  return regret;
}

}  // namespace greta::db
