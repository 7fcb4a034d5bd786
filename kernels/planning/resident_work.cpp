#include "kernels/planning/resident_work.hpp"

#include <algorithm>
#include <cmath>

namespace greta::kernels {

void make_resident(LaunchWork& work, double running, double barriers) {
  const double tiles = std::ceil(std::max(1.0, work.workgroups / running));
  work.workgroups = std::min(work.workgroups, running);
  for (double* const each :
       {&work.steps, &work.read_bytes, &work.written_bytes, &work.loads, &work.barriers,
        &work.matrix_flops, &work.vector_flops, &work.shared_traffic}) {
    *each *= tiles;
  }
  work.barriers += barriers * tiles;
}

}  // namespace greta::kernels
