#pragma once

#include <cstdint>
#include <vector>

#include "kernels/templates/common/rows.hpp"

/// What is tunable about the kernels of common/rows.{hip,glsl}.
namespace greta::kernels::rows {

/// Vectors of a row that each of its THREADS / ROWS threads has.
std::int64_t vectors_of_thread(std::int64_t cols, const Config& config);

Alternative held_space(const Shape&, const DeviceInfo&);
Alternative streamed_space(const Shape&, const DeviceInfo&);
Alternative split_space(const Shape&, const DeviceInfo&);
Alternative naive_space(const Shape&, const DeviceInfo&);

/// Best first; none where a row is too long to be held, or there are enough rows.
std::vector<Config> held_defaults(const Shape&, const DeviceInfo&);
std::vector<Config> streamed_defaults(const Shape&, const DeviceInfo&);
std::vector<Config> split_defaults(const Shape&, const DeviceInfo&);
std::vector<Config> naive_defaults(const Shape&, const DeviceInfo&);

}  // namespace greta::kernels::rows
