#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/catalog.hpp"
#include "kernels/model/tensor.hpp"

namespace greta::tuner {

using kernels::Catalog;
using kernels::HostTensor;
struct FailedCase;

/// What one operand contains in a run of its own: 1 in one row or column, and 0 elsewhere. Other
/// operands are as they were. What such runs give says how often each row or column counts, and in
/// place of which one.
struct Impulse {
  static constexpr std::int64_t none = -1;  ///< the whole operand is 0
  static constexpr std::int64_t all = -2;   ///< the whole operand is 1

  std::size_t operand = 0;  ///< among the tensors that kernels read
  bool rows = true;
  std::int64_t index = none;

  /// Returns an operand of this form.
  HostTensor applied_to(const HostTensor& operand_before) const;
  bool operator==(const Impulse&) const = default;
};

/// A kernel's outputs, with packed rows, for an impulse.
struct Response {
  Impulse impulse;
  std::vector<HostTensor> outputs;
};

/// Runs a case's unchanged kernels with impulses of their operands, on a CPU device of this machine
/// (device_for_changes()) and in a process of its own, for at most this long. Operands that are too
/// long, or for which there is no time, have no responses. Empty if the case can't be run here.
std::vector<Response> measured_responses(const Catalog& catalog, const FailedCase& failed,
                                         double seconds);

}  // namespace greta::tuner
