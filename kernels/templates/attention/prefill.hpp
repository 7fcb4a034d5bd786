#pragma once

#include <string>
#include <vector>

#include "kernels/model/launch_work.hpp"
#include "kernels/templates/attention/shape.hpp"

/// Shared parts of kernels that assign a tile of a head's queries to each workgroup.
namespace greta::kernels::attention {

/// Returns the values of TOGETHER, the number of heads that are scheduled together.
std::vector<int> heads_together();
/// Returns the default of TOGETHER: the heads of some KV heads.
int default_heads_together(const Shape& shape);

/// Returns the constraints that tiles of `rows` rows fit the grid and are not mostly idle. A row is
/// a query of a head, or of one of `packed` heads that share a tile.
std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device,
                                         const Expression& rows, const Expression& packed = 1);

/// Returns the divisions of such a kernel: the queries, or the rows of packed heads, into tiles,
/// the keys into steps of BK, and the heads of all sequences into groups of TOGETHER.
std::vector<Division> prefill_divisions(const Shape& shape, const Config& config, std::int64_t rows,
                                        std::int64_t packed = 1);

/// Returns the division of the tiles of keys that a workgroup walks through, `keys` of all
/// workgroups at a time, into buffers in shared memory, of which `parameter` is the number.
Division buffered_tiles(const Shape& shape, const Config& config, std::int64_t keys,
                        const std::string& parameter);

/// Returns the work of workgroups that read keys and values in steps of BK for `rows` rows, without
/// the fields that depend on how they compute. Causal masks hide up to half of the keys.
LaunchWork prefill_work(const Shape& shape, const Config& config, std::int64_t rows,
                        std::int64_t packed = 1);
/// The vector operations for the weight of one score: maximum, exponential function, sum.
constexpr double flops_of_weight = 16;

/// Returns the single launch of a kernel with these numbers of queries and threads per workgroup.
LaunchPlan prefill_plan(const Shape& shape, const DeviceInfo& device, std::string_view name,
                        const Defines& defines, std::int64_t queries, std::int64_t threads);

}  // namespace greta::kernels::attention
