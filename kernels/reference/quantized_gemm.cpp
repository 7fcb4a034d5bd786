#include <cstring>

#include "kernels/model/weight_groups.hpp"
#include "kernels/reference/dequantized.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/rounded_weights.hpp"

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
  matrix.group = group_length(problem, matrix.format);
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
  if (problem.attribute("math", "exact") == "rounded_weights") {
    scales.of_norm = rounding_of_weights(matrix.format, problem.dtype, matrix.k);
  }
  return scaled_product_reference(product_of(problem), operands, scales, seed);
}

}  // namespace greta::kernels
