#pragma once

#include <optional>
#include <span>

#include "kernels/model/operation.hpp"
#include "kernels/prior/cost_terms.hpp"

namespace greta::kernels {

/// The few numbers of the static prior, which are fitted to recorded trials by
/// scripts/fit_prior.py.
struct PriorCoefficients {
  CostTerms factors{};  ///< of the terms
  /// The exponent of the norm by which all terms but `launches` are combined: 1 adds them, as if
  /// nothing overlapped; a large one takes the greatest, as in a roofline.
  double norm = 2;
};

const PriorCoefficients& fitted_prior();

/// Returns a predicted time in cycles of a compute unit. Only the order and the ratio of
/// predictions for one problem matter.
double predicted_cycles(const CostTerms& terms, const PriorCoefficients& prior = fitted_prior());

/// Ranks configurations of a problem on a device by what is known without compiling or running
/// them: the roofline of a workgroup, its occupancy, how workgroups fill the compute units, and
/// latencies that nothing hides (Variant::work, docs/search.md). The operation must outlive it.
class StaticPrior {
 public:
  StaticPrior(const Operation& operation, const Problem& problem, const DeviceInfo& device)
      : instance_(operation, problem, device), rates_(unit_rates(device)) {}

  const Instance& instance() const { return instance_; }
  /// Returns what the prediction consists of; nothing if the configuration's variant does not
  /// describe its work. The arguments are those of cost().
  std::optional<CostTerms> terms(const Config& config,
                                 std::span<const double> registers = {}) const;
  /// Returns the predicted cycles; nothing if the configuration's variant does not describe its
  /// work. The configuration must be valid. `registers` are those of each launch's kernel as it was
  /// compiled; empty: they are estimated.
  std::optional<double> cost(const Config& config, std::span<const double> registers = {}) const;

 private:
  Instance instance_;
  UnitRates rates_;
};

}  // namespace greta::kernels
