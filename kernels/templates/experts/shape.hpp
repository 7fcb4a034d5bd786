#pragma once

#include <cstdint>
#include <optional>

#include "kernels/model/operation.hpp"
#include "kernels/model/problem.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"

namespace greta::kernels::experts {

struct Shape {
  explicit Shape(const Problem& problem);

  /// Returns the number of pairs of a token and one of its experts.
  std::int64_t pairs() const { return tokens * top_k; }
  /// Returns whether groups of quantised weights have scales beside the matrices, and their type.
  bool has_scales() const { return group > 0; }
  DType scales() const { return format == WeightFormat::mxfp4 ? DType::u8 : halves(); }
  /// Returns a type of 16 bits, of which kernels load quantised elements.
  DType halves() const { return in == DType::bf16 ? DType::bf16 : DType::f16; }
  /// Returns whether matrices are numbers of eight bits with scales.
  bool scaled() const { return gate_up_lines.has_value(); }
  /// Returns the bits of an element of matrices that are not quantised.
  int element_bits() const { return scaled() ? 8 : bits_of(in); }
  /// Returns the bytes of a line of `length` elements of a matrix in a format, with those of its
  /// scales.
  std::int64_t line_bytes(std::optional<WeightFormat> of, std::int64_t length) const;

  DType in, out;
  std::int64_t tokens, experts, top_k, dim, hidden;
  std::optional<WeightFormat> format;  ///< of gate_up; std::nullopt: numbers of type `in`, of both
  std::optional<WeightFormat> down_format;  ///< of down: as gate_up, or both are in blocks
  std::int64_t group = 0;  ///< with int4, int8 and mxfp4: weights that share a scale
  bool zeros = false;      ///< with int4 and int8: whether each group has a zero point
  bool panels = false;     ///< whether quantised matrices have panels of lines (weight_packing.hpp)
  /// Of scaled matrices: the lines and scales of B in a scaled_grouped_gemm with each.
  std::optional<scaled_gemm::Shape> gate_up_lines, down_lines;
};

/// Returns the number of different experts that plain inputs choose.
std::int64_t chosen_experts(const Shape& shape);

/// Implement Operation::input and Operation::harden.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed);
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

/// Two launches that read each pair's matrices, of which caches serve those that several tokens
/// have: matrices of numbers, and quantised ones.
Variant gemv();
Variant quantized();

}  // namespace greta::kernels::experts
