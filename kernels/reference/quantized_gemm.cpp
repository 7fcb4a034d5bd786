#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/reference/dequantized.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {

namespace {

/// Returns the product of the dequantised weights.
Problem product_of(const Problem& problem) {
  Problem product = plain_product(problem, problem.dtype);
  for (const char* name : {"epilogue", "prologue", "epsilon"}) {
    const std::string value = problem.attribute(name, "");
    if (!value.empty()) product.attributes.emplace_back(name, value);
  }
  return product;
}

/// Returns what rounded weights may add to the error, relative to the root of the sum of the
/// squared products. Each rounding changes a weight by v, the unit roundoff of A's type, at most.
/// Kernels round a weight once, scales that the type does not have before that, and of q4_k both
/// terms, which together are up to three times as large as the weight. A sum of K such errors is at
/// most sqrt(K) v times the root (Cauchy-Schwarz); errors of mean zero stay below 8 v
/// (GemmErrorModel). Below the normal numbers of f16 nothing is rounded: scales of f16 times
/// integers are multiples of its least number.
double rounding_of_weights(const Problem& problem, WeightFormat format) {
  if (problem.attribute("math", "exact") == "exact" || format == WeightFormat::mxfp4) return 0;
  const bool has_scales = !in_blocks(format) || problem.dtype == DType::f16;
  const int roundings = format == WeightFormat::q4_k                 ? 4
                        : has_scales && format != WeightFormat::q6_k ? 1
                                                                     : 2;
  const auto length = static_cast<double>(problem.dim("k"));
  return roundings * unit_roundoff(problem.dtype) * std::min(std::sqrt(length), 8.0);
}

}  // namespace

bool quantized_gemm_fully_checked(const Problem& problem) {
  return gemm_fully_checked(product_of(problem));
}

std::unique_ptr<Reference> quantized_gemm_reference(const Problem& problem,
                                                    const std::vector<HostTensor>& inputs,
                                                    std::uint64_t seed) {
  QuantizedMatrix matrix;
  matrix.format = weight_format_from_string(problem.attribute("weights", "int4")).value();
  const std::string epilogue = problem.attribute("epilogue", "none");
  matrix.k = problem.dim("k");
  matrix.group = only_group(matrix.format);
  if (matrix.group == 0) matrix.group = std::stoll(problem.attribute("group", "128"));
  matrix.integers = &tensor_named(inputs, "B");
  matrix.rows = matrix.integers->spec.rows;
  if (!in_blocks(matrix.format)) matrix.scales = &tensor_named(inputs, "scales");
  if (problem.attribute("zeros", "none") == "groups") matrix.zeros = &tensor_named(inputs, "zeros");
  const std::vector<float> weights = dequantized(matrix);
  HostTensor b{{"B", Role::input, DType::f32, matrix.rows, matrix.k}, {}};
  b.data.resize(b.spec.bytes());
  std::memcpy(b.data.data(), weights.data(), b.data.size());
  std::vector<HostTensor> operands{tensor_named(inputs, "A"), std::move(b)};
  if (problem.attribute("prologue", "none") == "rmsnorm") {
    operands.push_back(tensor_named(inputs, "weight"));
  }
  if (epilogue == "bias" || epilogue == "residual") {
    operands.push_back(tensor_named(inputs, epilogue));
  }
  ProductScales scales;
  scales.of_norm = rounding_of_weights(problem, matrix.format);
  return scaled_product_reference(product_of(problem), operands, scales, seed);
}

}  // namespace greta::kernels
