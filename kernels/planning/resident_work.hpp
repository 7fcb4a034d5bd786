#pragma once

#include "kernels/model/launch_work.hpp"

namespace greta::kernels {

/// Makes `running` workgroups do the work of all, tile after tile. `barriers`: for each tile, the
/// time of storing its sums, in that of barriers.
void make_resident(LaunchWork& work, double running, double barriers);

}  // namespace greta::kernels
