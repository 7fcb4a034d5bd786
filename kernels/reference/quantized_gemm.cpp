#include <cstring>

#include "kernels/model/weight_groups.hpp"
#include "kernels/model/weight_packing.hpp"
#include "kernels/model/weight_panels.hpp"
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

/// Returns B, scales and zeros of packed weights as rows.
std::vector<HostTensor> as_rows(const PackedMatrix& m, const std::vector<HostTensor>& inputs,
                                bool has_zeros) {
  const auto made = [&](const char* name, DType type, std::int64_t cols) {
    HostTensor tensor{{name, Role::input, type, m.n, cols}, {}};
    tensor.data.resize(tensor.spec.bytes());
    return tensor;
  };
  const HostTensor& stored = tensor_named(inputs, "scales");
  std::vector<HostTensor> list{made("B", DType::u8, m.row_bytes()),
                               made("scales", stored.spec.dtype, m.groups())};
  repack_integers(m, tensor_named(inputs, "B").data.data(), nullptr, list[0].data.data());
  if (m.bits == 8 && !has_zeros) make_signed(list[0].data.data(), m.n * m.k);
  if (has_zeros) list.push_back(made("zeros", DType::u8, m.groups()));
  for (std::int64_t row = 0; row < m.n; ++row) {
    for (std::int64_t g = 0; g < m.groups(); ++g) {
      const auto to = static_cast<std::size_t>(row * m.groups() + g);
      std::memcpy(list[1].data.data() + 2 * to, stored.data.data() + 2 * (g * m.n + row), 2);
      if (!has_zeros) continue;
      const std::byte* const words = tensor_named(inputs, "zeros").data.data();
      list[2].data[to] = static_cast<std::byte>(packed_zero_point(m, words, row, g));
    }
  }
  return list;
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
  const bool has_zeros = problem.attribute("zeros", "none") == "groups";
  std::vector<HostTensor> rows;
  const std::string packing = problem.attribute("packing", "rows");
  HostTensor of_panels;
  if (packing == "panels") {
    const HostTensor& stored = tensor_named(inputs, "B");
    of_panels = stored;
    panels_to_rows(stored.data.data(), stored.spec.rows, stored.spec.cols, of_panels.data.data());
  } else if (packing != "rows") {
    PackedMatrix packed = packed_matrix_of(problem);
    if (epilogue == "swiglu") packed.n *= 2;
    rows = as_rows(packed, inputs, has_zeros);
  }
  const std::vector<HostTensor>& weights_of = rows.empty() ? inputs : rows;
  matrix.integers = packing == "panels" ? &of_panels : &tensor_named(weights_of, "B");
  matrix.rows = matrix.integers->spec.rows;
  if (!in_blocks(matrix.format)) matrix.scales = &tensor_named(weights_of, "scales");
  if (has_zeros) matrix.zeros = &tensor_named(weights_of, "zeros");
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
