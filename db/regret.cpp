#include "db/regret.hpp"

#include <cmath>
#include <limits>

#include "kernels/catalog.hpp"

namespace greta {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_valid(const Problem& problem, const DeviceInfo& device, const Config& config) {
  const auto* kernel_template = find_template(problem.op);
  if (kernel_template == nullptr || !check_problem(*kernel_template, problem)) return false;
  std::vector<Alternative> alternatives;
  for (const auto& variant : kernel_template->variants) {
    if (variant.name == config.variant) alternatives.push_back(variant.space(problem, device));
  }
  return !rejects(alternatives, config);
}

}  // namespace

double shape_distance(const Problem& a, const Problem& b) {
  const bool comparable = a.op == b.op && a.dtype == b.dtype && a.out_dtype == b.out_dtype &&
                          a.attributes == b.attributes && a.dims.size() == b.dims.size();
  if (!comparable) return infinity;
  double distance = 0;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    const auto& [name, extent] = a.dims[i];
    if (name != b.dims[i].first) return infinity;
    if (extent == b.dims[i].second) continue;
    if (extent <= 0 || b.dims[i].second <= 0) return infinity;
    distance +=
        std::abs(std::log(static_cast<double>(extent) / static_cast<double>(b.dims[i].second)));
  }
  return distance;
}

const StoredWinner* nearest_neighbour(const StoredWinner& result,
                                      const std::vector<StoredWinner>& winners) {
  const StoredWinner* nearest = nullptr;
  double least = infinity;
  for (const auto& other : winners) {
    const double distance = shape_distance(result.problem, other.problem);
    const bool nearer = distance < least || (nearest != nullptr && distance == least &&
                                             other.problem.key() < nearest->problem.key());
    if (distance == 0 || !nearer || other.winner.cold != result.winner.cold ||
        other.device.fingerprint() != result.device.fingerprint() ||
        !is_valid(result.problem, result.device, other.winner.config)) {
      continue;
    }
    nearest = &other;
    least = distance;
  }
  return nearest;
}

std::optional<Regret> recorded_regret(const TunedDb& db, const StoredWinner& result,
                                      const StoredWinner& neighbour) {
  Regret regret;
  regret.neighbour = neighbour.problem.dims_text();
  const Config& config = neighbour.winner.config;
  if (config == result.winner.config) return regret;
  for (const auto& tie : result.winner.ties) {
    if (tie.config != config) continue;
    regret.ratio = tie.ratio_to_winner;
    regret.source = Regret::Source::tie;
    return regret;
  }
  const auto here = db.recorded_us(result, config);
  const auto best = db.recorded_us(result, result.winner.config);
  if (!here || !best) return std::nullopt;
  regret.ratio = *here / *best;
  regret.source = Regret::Source::trials;
  return regret;
}

}  // namespace greta
