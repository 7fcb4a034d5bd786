#include "kernels/skeletons/norms.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/model/random.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/skeletons/rows.hpp"

namespace greta::kernels::rows {
namespace {

std::optional<std::string> canonical_epsilon(const std::string& text) {
  const auto value = finite_number(text);
  return value && *value >= 1e-12F && *value <= 1 ? canonical_number(text) : std::nullopt;
}

}  // namespace

float epsilon(const Problem& problem) {
  return finite_number(problem.attribute("epsilon", "1e-05")).value();
}

Attribute affine_attribute(const char* help, std::vector<std::string> allowed) {
  const std::string fallback = allowed.front();
  return {.name = "affine", .help = help, .fallback = fallback, .allowed = std::move(allowed)};
}

Attribute epsilon_attribute() {
  return {.name = "epsilon",
          .help = "what is added under the root",
          .fallback = "1e-05",
          .allowed_text = "a number between 1e-12 and 1",
          .canonical = canonical_epsilon,
          .examples = {"1e-05", "0.25"}};
}

Attribute prologue_attribute() {
  return {.name = "prologue",
          .help = "what is done to A's rows first; rmsnorm: A / sqrt(mean(A^2) + epsilon) * weight",
          .fallback = "none",
          .allowed = {"none", "rmsnorm"}};
}

Problem rmsnorm_before(const Problem& product) {
  const DType type = product.dtype;
  Problem norm{"rmsnorm", type, type, {}, {{"rows", product.dim("m")}, {"cols", product.dim("k")}}};
  const std::string epsilon = product.attribute("epsilon", "");
  if (!epsilon.empty()) norm.attributes.emplace_back("epsilon", epsilon);
  return norm;
}

void add_affine(std::vector<TensorSpec>& tensors, const Problem& problem,
                std::string_view fallback) {
  const std::string affine = problem.attribute("affine", fallback);
  if (affine != "none") tensors.push_back(first_row(problem, "weight"));
  if (affine == "weight_bias") tensors.push_back(first_row(problem, "bias"));
}

void harden_norm(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  const double cols = static_cast<double>(problem.dim("cols"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType type = inputs[i].spec.dtype;
    Magnitudes range = magnitudes_of(type);
    const bool factor = inputs[i].spec.rows == 1 && i > 0;
    range.most = std::min(range.most, factor ? 0x1p40 : 0x1p59 / std::sqrt(cols));
    if (factor) range.least = std::max(range.least, 0x1p-40);
    mix_in_adversarial_rows(inputs[i], range, mix64(seed + i));
  }
}

}  // namespace greta::kernels::rows
