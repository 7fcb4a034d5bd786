#include <array>
#include <atomic>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/model/block_formats.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/model/weight_groups.hpp"
#include "kernels/model/weight_panels.hpp"
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

/// Weights in blocks. A block is decoded once while a thread reads its weights one after the other.
class Blocks {
 public:
  Blocks(KeptTensor b, WeightFormat format)
      : b_(std::move(b)),
        format_(*traits(format).blocks),
        weights_(block_weights(format)),
        bytes_(block_bytes(format)) {}

  double at(std::int64_t index) const {
    thread_local Decoded last;
    if (last.of != number_ || last.block != index / weights_) {
      last.of = number_;
      last.block = index / weights_;
      decode_blocks(format_, b_->data.data() + last.block * bytes_, 1, last.values.data());
    }
    return last.values[static_cast<std::size_t>(index % weights_)];
  }

 private:
  struct Decoded {
    std::uint64_t of = 0;  ///< number of the tensor; 0: of none
    std::int64_t block = 0;
    std::array<double, 256> values{};
  };

  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  KeptTensor b_;
  BlockFormat format_;
  std::int64_t weights_, bytes_;
  std::uint64_t number_ = next_number();
};

/// Returns panels as rows.
KeptTensor as_rows(const HostTensor& panels) {
  auto rows = std::make_shared<HostTensor>(panels);
  rows->data = rows_of_panels(panels.data, panels.spec.cols);
  return rows;
}

}  // namespace

std::unique_ptr<Reference> dequantize_reference(const Problem& problem,
                                                const std::vector<HostTensor>& inputs,
                                                std::uint64_t) {
  const std::int64_t cols = problem.dim("cols");
  const WeightFormat format = *weight_format_from_string(problem.attribute("weights", "int4"));
  const KeptTensor b = problem.attribute("packing", "rows") == "panels"
                           ? as_rows(tensor_named(inputs, "B"))
                           : keep_tensor(inputs, "B");
  const bool beside = !in_blocks(format), points = problem.attribute("zeros", "none") == "groups";
  const KeptTensor scales = beside ? keep_tensor(inputs, "scales") : nullptr;
  const KeptTensor zeros = points ? keep_tensor(inputs, "zeros") : nullptr;
  const std::int64_t group = group_length(problem, format);
  const TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("rows"), cols};
  const QuantizedMatrix matrix{.format = format,
                               .rows = out.rows,
                               .k = cols,
                               .group = group,
                               .integers = b.get(),
                               .scales = scales.get(),
                               .zeros = zeros.get()};
  const auto blocks = traits(format).blocks ? std::make_shared<const Blocks>(b, format) : nullptr;
  const auto value_of = [=](std::int64_t row, std::int64_t col) {
    return blocks ? blocks->at(row * cols + col) : weight_of_group(matrix, row, col);
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
