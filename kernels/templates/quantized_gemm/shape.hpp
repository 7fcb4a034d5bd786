#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/model/problem.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/model/weight_packing.hpp"
#include "kernels/templates/gemm/row_groups.hpp"

namespace greta::kernels::quantized_gemm {

/// What is done to the sums of a product, in the order of EPILOGUE in templates.
enum class Epilogue : std::uint8_t {
  none,
  bias,      ///< a number for each column is added
  residual,  ///< a matrix like C is added
  swiglu,    ///< C = silu(gate) * up; the rows of B are those of gates, then those of ups
  geglu      ///< the same with gelu in its tanh form, of grouped products
};

/// The dimensions, types and attributes of a problem.
struct Shape : gemm::RowGroups {
  std::int64_t n = 0, k = 0;
  DType in = DType::f16;
  DType out = DType::f16;
  WeightFormat format = WeightFormat::int4;
  std::int64_t group = 0;  ///< weights of a row that share a scale; 0: they are in blocks
  bool zeros = false;      ///< whether each group has a zero point
  std::optional<WeightPacking> packing{};  ///< if B, scales and zeros are words of AWQ or GPTQ
  bool panels = false;                     ///< whether B has panels of rows (weight_packing.hpp)
  Epilogue epilogue = Epilogue::none;
  bool norm = false;  ///< A's rows are divided by their root mean square and multiplied by weights
  float epsilon = 0;  ///< of the norm, under the root
  bool rounded = false;  ///< weights may be rounded to A's type (attribute math)

  bool gated() const { return epilogue == Epilogue::swiglu || epilogue == Epilogue::geglu; }
  /// Returns whether kernels may rely on at most eight rows.
  bool few_rows() const { return !several() && m <= 8; }
  /// Returns the columns of the product, which are the rows of B, or of each group's.
  std::int64_t products() const { return gated() ? 2 * n : n; }

  /// Returns the matrix as it is packed. Requires `packing`.
  PackedMatrix packed() const {
    return {packing.value(), format == WeightFormat::int8 ? 8 : 4, products(), k, group};
  }

  /// Returns the type of scales that are an operand.
  DType scales() const {
    if (format == WeightFormat::mxfp4) return DType::u8;
    return in == DType::bf16 ? DType::bf16 : DType::f16;
  }
  /// Returns a type of 16 bits, of which all kernels load elements.
  DType halves() const { return in == DType::bf16 ? DType::bf16 : DType::f16; }
  /// Returns the scales of a row.
  std::int64_t row_scales() const { return group > 0 ? k / group : 0; }
};

/// The largest number of rows whose norm can be part of a product.
constexpr std::int64_t most_normed_rows = 8;

/// Returns the alignment of weights with rows of k: 16 bytes of integers, and where rows of blocks
/// are multiples of that, as boxes of a tensor map begin there; else that of halves of words.
std::int64_t weights_alignment(WeightFormat format, std::int64_t k);

/// Adds the attributes of integers in groups: `group`, the weights along `line` ("k", "a row") that
/// share a scale, and `zeros`, whether a group has a zero point.
void add_group_attributes(std::vector<Attribute>& list, const std::string& line);

/// Returns all attributes that say how weights are stored: their format, and those of groups.
std::vector<Attribute> weight_attributes(const std::string& line);

/// Returns the attribute `packing` of weights in rows or in panels, `which` of an operation's
/// operands.
Attribute panels_attribute(const std::string& which);

/// Checks that weights are rows, or panels of rows with scales beside them, which are whole with
/// gates, those of gates and of ups each: rows of groups are whole units.
Result<void> check_panels(const Shape& shape);

/// Returns the problem with weights in rows.
Problem with_rows(Problem problem);

/// Checks that rows of weights are whole blocks or groups, and that only integers without a format
/// of their own have groups and zero points.
Result<void> check_weights(const Problem& problem, const Shape& shape);

/// Adds the operands that hold `rows` rows of weights: B, scales and zeros.
void add_weights(std::vector<TensorSpec>& list, const Shape& shape, std::int64_t rows);

/// Requires a problem that check_problem() accepts.
Shape shape_of(const Problem& problem);

}  // namespace greta::kernels::quantized_gemm
