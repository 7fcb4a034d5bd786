#pragma once

#include <cstdint>

#include "kernels/model/tensor.hpp"

namespace greta::kernels {

/// Selects the values of a problem's inputs.
enum class InputStyle {
  plain,        ///< moderate values and valid lengths, positions and ids; used for timing
  adversarial,  ///< includes rows of extreme values, and invalid lengths, positions and ids
  finite,       ///< as adversarial, with zeros for infinities and NaN (Variant::finite_inputs)
};

/// A range of magnitudes for the nonzero elements of a tensor.
struct Magnitudes {
  double least = 0;
  double most = 0;
};

/// Returns the full range of a type: smallest subnormal number to largest finite number.
Magnitudes magnitudes_of(DType type);
/// Returns the part of `range` that a type represents with normal numbers.
Magnitudes normal_within(DType type, Magnitudes range);

/// Replaces about half of the rows of a packed floating-point tensor. Each replaced row is of a
/// random kind that stresses careless arithmetic: huge, tiny, subnormal, equal, zero (of both
/// signs) or all-negative values, magnitudes across the range, one huge value among moderate ones,
/// moderate differences to a large value, or values whose exponentials overflow or vanish. All
/// nonzero magnitudes lie in `range`.
void mix_in_adversarial_rows(HostTensor& tensor, Magnitudes range, std::uint64_t seed);

/// Makes one to three elements of about a quarter of the rows of a packed floating-point tensor NaN
/// or infinite, at any places.
void mix_in_special_values(HostTensor& tensor, std::uint64_t seed);

/// Replaces about a quarter of the indices into `count` elements by the first and last valid index
/// and by invalid indices: -1, count, and values far out of range on both sides.
void mix_in_invalid_indices(HostTensor& indices, std::int64_t count, std::uint64_t seed);

}  // namespace greta::kernels
