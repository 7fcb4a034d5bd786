#include "kernels/prior/prior.hpp"

#include <algorithm>
#include <cmath>

namespace greta::kernels {

const PriorCoefficients& fitted_prior() {
  static const PriorCoefficients prior{.factors = {0.418, 1.176, 1.517, 0.653, 0.297, 0.687, 3.052,
                                                   0.801, 0.628, 1.928, 5.67, 0.403, 0.6, 1.501},
                                       .norm = 1.28};
  return prior;
}

double predicted_cycles(const CostTerms& terms, const PriorCoefficients& prior) {
  constexpr std::size_t launches = static_cast<std::size_t>(Term::launches);
  double greatest = 0;
  for (std::size_t i = 0; i < launches; ++i) {
    greatest = std::max(greatest, prior.factors[i] * terms[i]);
  }
  double sum = 0;
  for (std::size_t i = 0; i < launches && greatest > 0; ++i) {
    const double share = prior.factors[i] * terms[i] / greatest;
    if (share > 0) sum += std::pow(share, prior.norm);
  }
  return greatest * std::pow(sum, 1 / prior.norm) + prior.factors[launches] * terms[launches];
}

std::optional<CostTerms> StaticPrior::terms(const Config& config,
                                            std::span<const double> registers) const {
  KernelWork work = instance_.work(config);
  if (work.empty()) return std::nullopt;
  for (std::size_t i = 0; i < std::min(work.size(), registers.size()); ++i) {
    work[i].registers = registers[i];
  }
  return cost_terms(work, rates_);
}

std::optional<double> StaticPrior::cost(const Config& config,
                                        std::span<const double> registers) const {
  const auto known = terms(config, registers);
  return known ? std::optional(predicted_cycles(*known)) : std::nullopt;
}

}  // namespace greta::kernels
