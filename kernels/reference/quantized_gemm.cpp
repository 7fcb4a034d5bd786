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
  matrix.k = problem.dim("k");
  matrix.group = group_length(problem, matrix.format);
  const std::string packing = problem.attribute("packing", "rows");
  const bool has_zeros = problem.attribute("zeros", "none") == "groups";
  std::vector<HostTensor> rows;
  if (packing != "rows" && packing != "panels") {
    PackedMatrix packed = packed_matrix_of(problem);
    if (problem.attribute("epilogue", "none") == "swiglu") packed.n *= 2;
    rows = as_rows(packed, inputs, has_zeros);
  }
  const std::vector<HostTensor>& weights = rows.empty() ? inputs : rows;
  HostTensor integers = tensor_named(weights, "B"), scales, zeros;
  if (packing == "panels") integers.data = rows_of_panels(integers.data, integers.spec.cols);
  if (!in_blocks(matrix.format)) scales = tensor_named(weights, "scales");
  if (has_zeros) zeros = tensor_named(weights, "zeros");
  matrix.rows = integers.spec.rows;
  ProductOperands operands;
  operands.a.lines = rows_of(packed(tensor_named(inputs, "A")));
  operands.b.lines =
      dequantized_rows(matrix, std::move(integers), std::move(scales), std::move(zeros));
  if (problem.attribute("math", "exact") == "rounded_weights") {
    operands.of_norm = rounding_of_weights(matrix.format, problem.dtype, matrix.k);
  }
  return product_reference(product_of(problem), inputs, std::move(operands), seed);
}

}  // namespace greta::kernels
