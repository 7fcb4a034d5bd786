#include <array>
#include <cmath>
#include <string>

#include "kernels/model/block_formats.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/reference/dequantized.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

/// Returns a bound of the sum of the sizes of a q4_k weight's two terms, of which the second is at
/// most 63 times the scale of the block's minima.
double terms_of_q4_k(const HostTensor& b, std::int64_t index, double value) {
  const std::byte* const block = b.data.data() + index / 256 * block_bytes(WeightFormat::q4_k);
  return std::abs(value) + 2 * 63 * std::abs(load_element(DType::f16, block + 2, 0));
}

}  // namespace

std::unique_ptr<Reference> dequantize_reference(const Problem& problem,
                                                const std::vector<HostTensor>& inputs,
                                                std::uint64_t) {
  const std::int64_t cols = problem.dim("cols");
  const WeightFormat format = *weight_format_from_string(problem.attribute("weights", "int4"));
  const KeptTensor b = keep_tensor(inputs, "B");
  const bool beside = !in_blocks(format), points = problem.attribute("zeros", "none") == "groups";
  const KeptTensor scales = beside ? keep_tensor(inputs, "scales") : nullptr;
  const KeptTensor zeros = points ? keep_tensor(inputs, "zeros") : nullptr;
  const std::int64_t group =
      only_group(format) > 0 ? only_group(format) : std::stoll(problem.attribute("group", "128"));
  const TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("rows"), cols};
  const QuantizedMatrix matrix{.format = format,
                               .rows = out.rows,
                               .k = cols,
                               .group = group,
                               .integers = b.get(),
                               .scales = scales.get(),
                               .zeros = zeros.get()};
  const auto value_of = [=](std::int64_t row, std::int64_t col) {
    const auto blocks = traits(format).blocks;
    if (!blocks) return weight_of_group(matrix, row, col);
    const std::int64_t index = row * cols + col, weights = block_weights(format);
    double values[256];
    decode_blocks(*blocks, b->data.data() + index / weights * block_bytes(format), 1, values);
    return values[index % weights];
  };
  // Keeps the tensors that `matrix` refers to.
  const auto element = [=, kept = std::array{b, scales, zeros}, type = problem.out_dtype](
                           std::int64_t row, std::int64_t col) {
    const std::int64_t index = row * cols + col;
    const double value = value_of(row, col);
    double error = 0;
    if (format == WeightFormat::q4_k) error = 0x1p-23 * terms_of_q4_k(*b, index, value);
    // A scale of 2^-127 is subnormal, which devices may take for 0.
    if (format == WeightFormat::mxfp4 && scales->at(static_cast<std::size_t>(index / group)) == 0) {
      error = std::abs(value);
    }
    return rounded(type, value, error);
  };
  return elements_reference({{out, element}});
}

}  // namespace greta::kernels
