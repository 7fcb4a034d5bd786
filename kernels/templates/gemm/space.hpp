#pragma once

#include <vector>

#include "kernels/model/space.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::gemm {

/// gemv is offered up to so many rows, tiles from so many on: below, most of a tile is idle.
constexpr std::int64_t most_gemv_rows = 8;
constexpr std::int64_t least_tiled_rows = 5;

/// What is tunable, and which rules bind it: tiled, split_k and gemv.
std::vector<Alternative> alternatives(const Shape& shape, const DeviceInfo& device);

/// Columns of C that a gemv workgroup covers.
std::int64_t gemv_width(const Shape& shape, const Config& config);
/// K steps of each of the configuration's slices; the last slices may be shorter or empty.
std::int64_t slice_length(const Shape& shape, const Config& config);

}  // namespace greta::gemm
