#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::tuner {

/// Elements of outputs that still have the bits of nan_pattern, although a correct kernel writes
/// them. The kernel may have written these bits: -1, or a NaN.
struct Unchanged {
  std::vector<std::vector<bool>> marks;  ///< of each output's packed elements
  bool any = false;
};

/// What written_elsewhere() says of a row, after its name.
inline constexpr std::string_view writes_row_of_nobody = "which no correct kernel writes";

/// Returns which row of an output was written although no correct kernel writes it, or
/// std::nullopt. Outputs had nan_pattern before the launch.
std::optional<std::string> written_elsewhere(const Reference& reference,
                                             const std::vector<HostTensor>& outputs);
/// Gives rows that no correct kernel writes, and that have finite_pattern, the bits of nan_pattern.
void clear_rows_of_nobody(const Reference& reference, std::vector<HostTensor>& outputs);
/// Returns the content of an output in which each element that correct kernels write has
/// finite_pattern, and everything else nan_pattern.
std::vector<std::byte> filled_where_written(const Reference& reference, const TensorSpec& spec);
/// Returns the elements that may not have been written.
Unchanged unchanged_elements(const Reference& reference, const std::vector<HostTensor>& outputs);
/// Returns which of these elements were not written in a launch before which outputs had
/// finite_pattern, or std::nullopt if all were.
std::optional<std::string> not_written(const Unchanged& elements,
                                       const std::vector<HostTensor>& outputs);

}  // namespace greta::tuner
