#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// What a Reference also is if correct kernels leave some rows of outputs as they were.
class WrittenRows {
 public:
  virtual ~WrittenRows() = default;
  /// Returns whether a correct kernel writes this row of this output.
  virtual bool writes(std::string_view output, std::int64_t row) const = 0;
};

}  // namespace greta::kernels
