#include "kernels/prior/prior.hpp"

#include <algorithm>
#include <cmath>

namespace greta::kernels {

const PriorCoefficients& fitted_prior() {
  static const PriorCoefficients prior{.factors = {0.66, 1.438, 1.346, 0.821, 0.227, 0.839, 3.291,
                                                   1.068, 0.93, 1.005, 6.882, 0.305, 0.73},
                                       .norm = 1.603};
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

std::optional<double> StaticPrior::cost(const Config& config,
                                        std::span<const double> registers) const {
  KernelWork work = instance_.work(config);
  if (work.empty()) return std::nullopt;
  for (std::size_t i = 0; i < std::min(work.size(), registers.size()); ++i) {
    work[i].registers = registers[i];
  }
  return predicted_cycles(cost_terms(work, rates_));
}

}  // namespace greta::kernels
