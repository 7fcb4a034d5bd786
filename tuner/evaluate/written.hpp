#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::tuner {

/// An element of an output that still has the bits of nan_pattern, although a correct kernel writes
/// it. The kernel may have written these bits: -1, or a NaN.
struct Unchanged {
  std::size_t output = 0;  ///< the position in the list of outputs
  std::int64_t row = 0, col = 0;
};

/// Returns which row of an output was written although no correct kernel writes it, or
/// std::nullopt. Outputs had nan_pattern before the launch.
std::optional<std::string> written_elsewhere(const Reference& reference,
                                             const std::vector<HostTensor>& outputs);
/// Returns the elements that may not have been written, up to a few thousand of them.
std::vector<Unchanged> unchanged_elements(const Reference& reference,
                                          const std::vector<HostTensor>& outputs);
/// Returns which of these elements were not written in a launch before which outputs had
/// finite_pattern, or std::nullopt if all were.
std::optional<std::string> not_written(const std::vector<Unchanged>& elements,
                                       const std::vector<HostTensor>& outputs);

}  // namespace greta::tuner
