#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/tensor.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/reference/operand_lines.hpp"

namespace greta::kernels {

/// A matrix of quantised weights: rows of k.
struct QuantizedMatrix {
  WeightFormat format = WeightFormat::int4;
  std::int64_t rows = 0, k = 0;
  std::int64_t group = 0;  ///< weights that share a scale, where scales are tensors
  const HostTensor* integers = nullptr;
  const HostTensor* scales = nullptr;  ///< with int4, int8 and mxfp4: rows x k / group
  const HostTensor* zeros = nullptr;   ///< of these, if there are zero points: rows x k / group
};

/// Returns weight `i` of row `r`, exactly. Requires a format with scales beside the integers.
double weight_of_group(const QuantizedMatrix& matrix, std::int64_t r, std::int64_t i);

/// Writes `count` weights of row `r` from weight `first` on, as f32. They are exact but for those
/// of q4_k, which are rounded once: the sum of two products.
void dequantize(const QuantizedMatrix& matrix, std::int64_t r, std::int64_t first,
                std::int64_t count, double* to);

/// Returns all weights so, row after row.
std::vector<float> dequantized(const QuantizedMatrix& matrix);

/// Returns the rows so. `matrix` names the format and k, and a group's length; its tensors are the
/// ones given here, of which the scales and zero points can be empty.
KeptLines dequantized_rows(QuantizedMatrix matrix, HostTensor integers, HostTensor scales,
                           HostTensor zeros);

}  // namespace greta::kernels
