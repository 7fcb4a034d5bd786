#pragma once

// Blocks that run together and use each other's shared memory: sm_90's clusters. A block is named
// by its rank in the cluster, and a place in another block by the same place in the own one.

#include "runtime/device/hip/host/language/wave.hpp"

#if GRETA_HOST == 80

namespace greta_host {

/// PTX barrier.cluster.arrive.release.aligned, the same with .relaxed, and wait.acquire.aligned. A
/// thread that has arrived waits before it arrives again.
inline void cluster_arrive(Site site = here("barrier.cluster.arrive")) {
  exchange('\0', site);
  current->calls->meet_cluster(*current, ClusterStep::arrive, site);
}
inline void cluster_arrive_relaxed(Site site = here("barrier.cluster.arrive.relaxed")) {
  exchange('\0', site);
  current->calls->meet_cluster(*current, ClusterStep::arrive_relaxed, site);
}
inline void cluster_wait(Site site = here("barrier.cluster.wait")) {
  exchange('\0', site);
  current->calls->meet_cluster(*current, ClusterStep::wait, site);
}

/// PTX mapa: where this thread reads the block's place. Nothing may be written there.
template <typename T>
const T* place_in_block(unsigned rank, const T* own, Site site = here("mapa")) {
  if (!is_shared(own)) fail(site, "the place is not in shared memory");
  return static_cast<const T*>(current->calls->place_in_block(*current, rank, own, site));
}

/// PTX st.async.shared::cluster.mbarrier::complete_tx::bytes.v4: writes 16 bytes to the block, and
/// adds them to those of its barrier.
inline void send(unsigned rank, const void* own, const void* from, const uint64_t* barrier,
                 Site site = here("st.async")) {
  if (!is_shared(own)) fail(site, "the target is not in shared memory");
  if (reinterpret_cast<uintptr_t>(own) % 16 != 0)
    fail(site, "the target is not aligned to 16 bytes");
  current->calls->send(*current, rank, barrier, const_cast<void*>(own),
                       static_cast<const unsigned char*>(from), site);
}

/// PTX mbarrier.arrive.shared::cluster: arrives at a barrier of the block.
inline void counted_arrive_at(unsigned rank, const uint64_t* barrier,
                              Site site = here("mbarrier.arrive.shared::cluster")) {
  current->calls->arrive_in_block(*current, rank, barrier, site);
}

/// PTX fence.mbarrier_init.release.cluster: other blocks may use the barriers that were opened
/// before. So they may after an arrival at the cluster's barrier that is not relaxed.
inline void show_barriers() {
  current->calls->show_barriers(*current);
}

}  // namespace greta_host

#endif
