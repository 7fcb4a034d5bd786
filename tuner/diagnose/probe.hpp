#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/model/tensor.hpp"

namespace greta::tuner {

using kernels::HostTensor;

/// A run on changed inputs. Elements of one operand whose row (or column) has a bit set, or not
/// set, have other values. The probes of all bits tell from which row an output's element comes:
/// it changes with the rows that have the same bits.
struct Probe {
  std::string operand;
  bool rows = true;  ///< whether rows or columns are selected
  int bit = 0;       ///< of their index
  bool set = true;   ///< whether those change that have the bit, or those that don't
  /// Of each output, whether an element has other bits than with the unchanged inputs: packed rows.
  std::vector<std::vector<bool>> changed;
};

/// A case keeps at most this many bytes of marks, one bit for each element, output and probe.
inline constexpr std::size_t most_mark_bytes = std::size_t{64} << 20;

/// Returns the bytes of one probe's marks of the outputs among these operands: whole bytes for each
/// output.
std::size_t mark_bytes(const std::vector<kernels::TensorSpec>& specs);
/// Returns the marks of all probes, one after the other, of each the outputs' in order. The first
/// element is the lowest bit of a byte.
std::vector<std::byte> marks_of(const std::vector<Probe>& probes);
/// Sets the marks of probes to what marks_of() returned. Throws Error with `invalid_argument` if
/// these are marks of other outputs.
void set_marks(std::vector<Probe>& probes, const std::vector<kernels::TensorSpec>& specs,
               std::span<const std::byte> marks);

/// Returns the number of bits of the indices below `extent`.
int index_bits(std::int64_t extent);

/// Returns an operand with the elements changed that a probe selects.
HostTensor probed(HostTensor operand, const Probe& probe);

/// Returns the probes of an operand, not yet run; none of operands that aren't of floating-point
/// numbers, whose values may be indices.
std::vector<Probe> probes_of(const kernels::TensorSpec& spec);

}  // namespace greta::tuner
