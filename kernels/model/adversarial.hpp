#pragma once

#include <cstdint>

#include "kernels/model/tensor.hpp"

namespace greta::kernels {

/// Which values the inputs of a problem have.
enum class InputStyle {
  plain,        ///< moderate ones, and valid lengths, positions and ids: what is timed
  adversarial,  ///< rows of extreme values mixed in, and lengths, positions and ids out of range
};

/// Magnitudes of a tensor's elements, besides 0.
struct Magnitudes {
  double least = 0;
  double most = 0;
};

/// All that a type has: from its smallest subnormal number to its largest finite one.
Magnitudes magnitudes_of(DType type);
/// Those of a type that lie within a range, subnormal numbers left out.
Magnitudes normal_within(DType type, Magnitudes range);

/// Replaces about half of the rows of a packed tensor of floating point numbers, each by one of a
/// kind that breaks careless arithmetic: huge, tiny, subnormal, equal, zero or all negative values,
/// magnitudes all over the range, one huge value among moderate ones, moderate ones around a large
/// one, and those for which an exponential overflows or vanishes. All magnitudes are in the range.
void mix_in_adversarial_rows(HostTensor& tensor, Magnitudes range, std::uint64_t seed);

/// Replaces about a quarter of indices into `count` elements: by the first and last valid ones, and
/// by ones that are not: -1, count, and far away on both sides.
void mix_in_invalid_indices(HostTensor& indices, std::int64_t count, std::uint64_t seed);

}  // namespace greta::kernels
