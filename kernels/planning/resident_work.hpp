#pragma once

#include "kernels/model/launch_work.hpp"

namespace greta::kernels {

/// Makes `running` workgroups do the work of all, tile after tile. `barriers`: for each tile, the
/// time of storing its sums, in that of barriers. `filled`: the share of the tiles dealt to them
/// that have any rows, which are those of `work`. As nobody knows which these are, the busiest
/// workgroup gets more than the mean of them: 1.5 standard deviations.
void make_resident(LaunchWork& work, double running, double barriers, double filled = 1);

}  // namespace greta::kernels
