#pragma once

#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// What the workgroups of one launch do, as far as it is known before the kernel is compiled.
/// Counts include idle parts of incomplete tiles. 0 means that there is nothing of the kind.
struct LaunchWork {
  double workgroups = 1;
  double threads = 1;       ///< of a workgroup
  double shared_bytes = 0;  ///< of a workgroup
  double registers = 0;     ///< 32-bit, of a thread; an estimate

  /// The share of the compute units that can have workgroups: clusters leave some idle.
  double usable_units = 1;
  /// How much longer the last workgroups take than the mean, in mean durations of a workgroup.
  double imbalance = 0;

  // Of a workgroup:
  double matrix_flops = 0;    ///< by matrix instructions
  double vector_flops = 0;    ///< by vector instructions; an exponential function counts as several
  double shared_traffic = 0;  ///< bytes read and written in shared memory
  double conflicts = 1;       ///< times that shared_traffic takes because of bank conflicts
  double read_bytes = 0;      ///< loaded from memory, also what caches serve
  double written_bytes = 0;   ///< stored, and loaded to be added to what is stored
  double loads = 0;           ///< memory instructions of single threads

  /// Steps of the longest chain in which each waits for memory. Loads of prefetched data count when
  /// they begin.
  double steps = 1;
  double ahead_bytes = 0;   ///< requested by a workgroup before it waits
  bool overlapped = false;  ///< whether a workgroup computes while it loads the next step
  double barriers = 0;      ///< waits for all threads of a workgroup
  double tail_cycles = 0;   ///< in which it stores its results, or starts work, and nothing else

  /// Bytes that the launch moves from and to memory if caches serve every repeated read.
  double unique_bytes = 0;
  bool warpgroups = false;  ///< matrix instructions of four waves that read shared memory directly
};

/// The launches of a configuration, in order.
using KernelWork = std::vector<LaunchWork>;

}  // namespace greta::kernels
