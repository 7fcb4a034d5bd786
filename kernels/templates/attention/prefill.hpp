#pragma once

#include <vector>

#include "kernels/templates/attention/shape.hpp"

/// What kernels have in common that give each workgroup a tile of a head's queries.
namespace greta::kernels::attention {

/// Values of TOGETHER, heads that are walked together.
std::vector<int> heads_together();
/// That many, by default: the heads of some KV heads.
int default_heads_together(const Shape& shape);

/// The tiles of `queries` queries must fit the grid, and not be mostly idle.
std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device,
                                         const Expression& queries);

/// What such a kernel cuts: the queries into tiles, the keys into steps of BK, and the heads of all
/// sequences into groups of TOGETHER.
std::vector<Division> prefill_divisions(const Shape& shape, const Config& config,
                                        std::int64_t queries);

/// The one launch of a kernel with this text and so many queries and threads in a workgroup.
LaunchPlan prefill_plan(const Shape& shape, const DeviceInfo& device, std::string_view name,
                        const Defines& defines, std::int64_t queries, std::int64_t threads);

}  // namespace greta::kernels::attention
