#include "kernels/planning/resident_work.hpp"

#include <algorithm>
#include <cmath>

namespace greta::kernels {

void make_resident(LaunchWork& work, double running, double barriers, double filled) {
  const double mean = std::max(1.0, work.workgroups / running);
  const double more = 1.5 * std::sqrt(mean * (1 - filled));
  const double tiles = std::max(std::ceil(mean), std::round(mean + more));
  work.workgroups = std::min(work.workgroups, running);
  for (double* const each :
       {&work.steps, &work.read_bytes, &work.written_bytes, &work.loads, &work.barriers,
        &work.tail_cycles, &work.matrix_flops, &work.vector_flops, &work.shared_traffic}) {
    *each *= tiles;
  }
  work.barriers += barriers * tiles;
}

}  // namespace greta::kernels
