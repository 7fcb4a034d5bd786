#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tuner/diagnose/evidence.hpp"

/// Operands as they lie in memory, which hypotheses read in other ways.
namespace greta::tuner {

using Inputs = std::vector<HostTensor>;

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Returns the inputs with each element of one replaced: `value(row, col, flat)`, where `flat`
/// returns the element at a place in memory, and NaN outside of the operand and in its gaps.
template <typename Value>
Inputs replaced(const Evidence& evidence, std::size_t which, const Value& value) {
  Inputs inputs = evidence.inputs();
  const HostTensor& from = evidence.inputs()[which];
  HostTensor& to = inputs[which];
  const std::int64_t rows = from.spec.rows, cols = from.spec.cols;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = 0; col < cols; ++col) {
      store_element(to.spec.dtype, to.data.data(), static_cast<std::size_t>(row * cols + col),
                    value(row, col));
    }
  }
  return inputs;
}

/// An operand as it lies in memory.
class InMemory {
 public:
  InMemory(const Evidence& evidence, std::size_t which) : packed_(evidence.inputs()[which]) {
    for (const TensorSpec& spec : evidence.operation().tensors(evidence.problem())) {
      if (spec.name == packed_.spec.name) spec_ = spec;
    }
  }
  std::int64_t stride() const { return spec_.row_stride(); }
  /// The element as which the bytes at a place are read; NaN outside of the operand.
  double at_byte(std::int64_t byte) const {
    const auto size = static_cast<std::int64_t>(bytes_of(spec_.dtype, std::size_t{1}));
    std::array<std::byte, 16> raw{};
    const std::int64_t first = byte / size, rest = byte % size;
    if (byte < 0 || (std::isnan(at(first)) || (rest > 0 && std::isnan(at(first + 1)))))
      return not_a_number;
    store_element(spec_.dtype, raw.data(), 0, at(first));
    store_element(spec_.dtype, raw.data(), 1, rest > 0 ? at(first + 1) : 0);
    return load_element(spec_.dtype, raw.data() + rest, 0);
  }
  double at(std::int64_t flat) const {
    const auto [row, col] = spec_.place(flat);
    if (flat < 0 || row >= spec_.rows || col >= spec_.cols) return not_a_number;
    return packed_.at(static_cast<std::size_t>(row * spec_.cols + col));
  }

 private:
  const HostTensor& packed_;
  TensorSpec spec_;
};

}  // namespace greta::tuner
