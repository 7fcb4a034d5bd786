#include "kernels/templates/gemm/split_kernel.hpp"

#include <algorithm>

#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::gemm {

SplitKernel::SplitKernel(const Shape& shape, const DeviceInfo& device)
    : shape_(shape),
      wave_(device.subgroup_size),
      offered_(shape.tf32x3 && shape.in == DType::f32 && device.language == Language::hip &&
               has_warpgroup_products(device.architecture)) {}

std::int64_t SplitKernel::shared_bytes(const Config& c) const {
  constexpr std::int64_t lows = 2;  // buffers of S's low parts
  const std::int64_t bk = c["BK"], stages = c["STAGES"], waves = 4 * groups(c);
  const std::int64_t tiles = (stages * (rows(c) + span(c)) + lows * span(c)) * bk * 4;
  const std::int64_t barriers = stages + 2 * lows;
  // A wave's piece of the sums: 16 columns, or 16 rows of up to 64 columns.
  const std::int64_t width = swapped() ? 16 : std::min<std::int64_t>(span(c), 64);
  const std::int64_t height = !swapped() ? 16 : span(c) % 64 == 0 ? 64 : 32;
  return std::max(tiles, waves * height * (width + 8) * 4) + barriers * 8;
}

std::int64_t SplitKernel::least_registers(const Config& c) const {
  constexpr std::int64_t parts = 32, addresses = 8;  // of R's values of a K step
  return span(c) / 2 + (1 + c["AHEAD"]) * (c["PIECE"] / 2) + parts + addresses;
}

std::int64_t SplitKernel::registers(const Config& c) const {
  constexpr std::int64_t values = 16, more_addresses = 12;  // of the next K step
  return least_registers(c) + values + more_addresses;
}

std::int64_t SplitKernel::register_limit(const Config& c) const {
  return groups(c) == 1 ? 255 : groups(c) == 2 ? 224 : 152;
}

}  // namespace greta::kernels::gemm
