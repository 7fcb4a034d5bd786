#pragma once

#include <vector>

#include "kernels/templates/attention/shape.hpp"

/// What kernels have in common that give each workgroup a tile of a head's queries.
namespace greta::attention {

/// Values of TOGETHER, heads that are walked together.
std::vector<int> heads_together();
/// That many, by default: the heads of some KV heads.
int default_heads_together(const Shape& shape);

/// The tiles of BQ queries must fit the grid, and not be mostly idle; `queries` tells a
/// configuration's, and reads only `parameters`.
std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device,
                                         std::vector<std::string> parameters,
                                         std::function<std::int64_t(const Config&)> queries);

/// The one launch of a kernel with this text and so many queries and threads in a workgroup.
LaunchPlan prefill_plan(const Shape& shape, const DeviceInfo& device, std::string_view name,
                        const Defines& defines, std::int64_t queries, std::int64_t threads);

}  // namespace greta::attention
