#include "kernels/validity.hpp"

#include "kernels/catalog.hpp"

namespace greta::kernels {

bool is_valid(const Problem& problem, const DeviceInfo& device, const Config& config) {
  const auto* kernel_template = find_template(problem.op);
  if (kernel_template == nullptr || !check_problem(*kernel_template, problem)) return false;
  std::vector<Alternative> alternatives;
  for (const auto& variant : kernel_template->variants) {
    if (variant.name == config.variant) alternatives.push_back(variant.space(problem, device));
  }
  return !rejects(alternatives, config);
}

}  // namespace greta::kernels
