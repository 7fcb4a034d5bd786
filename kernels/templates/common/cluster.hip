// Blocks that run together and write to each other's shared memory: NVIDIA's clusters, from sm_90
// on.
// Source: PTX ISA, barrier.cluster, mapa, mbarrier and st.async.
#pragma once

#if !defined(GRETA_NVIDIA) && !(defined(GRETA_HOST) && GRETA_HOST == 80)
#error "only NVIDIA's GPUs have clusters"
#endif

// In place of GRETA_KERNEL: `blocks` neighbours along the grid's z are a cluster.
#define GRETA_CLUSTER_KERNEL(threads, blocks) \
  extern "C" __global__ void __cluster_dims__(1, 1, blocks) __launch_bounds__(threads)

//   place_in_block(block, own)  the same place in the shared memory of a block of the cluster, to read from
//   cluster_arrive()            tells the other threads of the cluster that this one is here, and goes on
//   cluster_arrive_relaxed()    the same, but nothing before it is ordered: for threads that have used what
//                               they read from others, or opened barriers (show_barriers() in
//                               tensor_copy.hip)
//   cluster_wait()              returns when all threads of the cluster that have not ended have arrived.
//                               They see then what each other wrote before
#if defined(GRETA_HOST)

template <typename T>
GRETA_DEVICE const T* place_in_block(u32 block, const T* own) {
  return greta_host::place_in_block(block, own);
}
GRETA_DEVICE void cluster_arrive() { greta_host::cluster_arrive(); }
GRETA_DEVICE void cluster_arrive_relaxed() { greta_host::cluster_arrive_relaxed(); }
GRETA_DEVICE void cluster_wait() { greta_host::cluster_wait(); }

#else

GRETA_DEVICE u32 shared_address(const void* place) { return u32(__cvta_generic_to_shared(place)); }

// The same place in the shared memory of a block of the cluster.
GRETA_DEVICE u32 address_in_block(u32 block, const void* own) {
  u32 remote;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(remote)
      : "r"(shared_address(own)), "r"(block));
  return remote;
}

template <typename T>
GRETA_DEVICE const T* place_in_block(u32 block, const T* own) {
  u64 remote;
  asm("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(reinterpret_cast<u64>(own)), "r"(block));
  return reinterpret_cast<const T*>(remote);
}

GRETA_DEVICE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
GRETA_DEVICE void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
GRETA_DEVICE void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

#endif

GRETA_DEVICE void cluster_barrier() {
  cluster_arrive();
  cluster_wait();
}
// cluster_barrier() waits for stores to device memory, 0.5 us after a tile of a product (sm_90).
GRETA_DEVICE void cluster_barrier_relaxed() {
  cluster_arrive_relaxed();
  cluster_wait();
}

// What the other blocks of the cluster send to this one, to anywhere in its shared memory. Each
// waits only for what it gets: a barrier of the cluster costs 0.4 us (sm_90).
struct Inbox {
  u64* arrived;  // in shared memory, at the same place in each block

  // `bytes` will be sent to this block.
  GRETA_DEVICE void open(u32 bytes) const {
    if (thread_index() == 0) {
      open_barrier();
      expect(bytes);
    }
    __syncwarp();
  }

  // All threads, behind open(), whose fence shows the barrier to others: from here on they may send. A
  // release would wait for all loads under way.
  GRETA_DEVICE void let_others_send() const { cluster_arrive_relaxed(); }

  // The same, where what others send takes the place of what this block's threads have written or
  // read: writes that wait in the queue for shared memory would come after it.
  GRETA_DEVICE void let_others_overwrite() const { cluster_arrive(); }

  // Returns when all blocks let others send. All threads, before they send.
  GRETA_DEVICE void await_others() const { cluster_wait(); }

  // One thread: `bytes` will be sent to this block in the phase that begins.
  GRETA_DEVICE void expect(u32 bytes) const;

  // Puts four neighbours at the place of `own` in another block.
  GRETA_DEVICE void send(u32 block, const float* own, const float (&x)[4]) const;

  // Returns when all that is sent to this block is there. `phase`: parity of the number of times
  // that it had to expect() something since open().
  GRETA_DEVICE void receive(u32 phase = 0) const;

 private:
  GRETA_DEVICE void open_barrier() const;
};

#if defined(GRETA_HOST)

GRETA_DEVICE void Inbox::open_barrier() const {
  greta_host::counted_open(reinterpret_cast<uint64_t*>(arrived), 1);
  greta_host::show_barriers();
}
GRETA_DEVICE void Inbox::expect(u32 bytes) const {
  greta_host::counted_expect(reinterpret_cast<uint64_t*>(arrived), bytes);
}
GRETA_DEVICE void Inbox::send(u32 block, const float* own, const float (&x)[4]) const {
  greta_host::send(block, own, x, reinterpret_cast<const uint64_t*>(arrived));
}
GRETA_DEVICE void Inbox::receive(u32 phase) const {
  greta_host::counted_wait(reinterpret_cast<uint64_t*>(arrived), phase);
}

#else

GRETA_DEVICE void Inbox::open_barrier() const {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(arrived)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
GRETA_DEVICE void Inbox::expect(u32 bytes) const {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(arrived)),
               "r"(bytes)
               : "memory");
}
GRETA_DEVICE void Inbox::send(u32 block, const float* own, const float (&x)[4]) const {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"
      " [%0], {%1, %2, %3, %4}, [%5];" ::"r"(address_in_block(block, own)),
      "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(address_in_block(block, arrived))
      : "memory");
}
GRETA_DEVICE void Inbox::receive(u32 phase) const {
  u32 done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], %2;\n"
        "selp.u32 %0, 1, 0, complete;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(arrived)), "r"(phase)
        : "memory");
  }
}

#endif
