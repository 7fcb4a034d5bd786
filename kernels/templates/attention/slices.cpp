#include "kernels/templates/attention/slices.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace greta::kernels::attention {

std::int64_t rounded_capacity(const Shape& shape) {
  return next_power(shape.capacity);
}

std::vector<int> key_slices() {
  return {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
}

Constraint workspace_constraint(const DeviceInfo& device, const Expression& unsplit,
                                const Expression& bytes) {
  const auto most =
      static_cast<std::int64_t>(std::min(device.memory_bytes / 4, device.max_allocation_bytes));
  return {"workspace", fmt::format("what SPLIT slices leave needs more than {} MiB", most >> 20),
          unsplit || bytes <= most};
}

}  // namespace greta::kernels::attention
