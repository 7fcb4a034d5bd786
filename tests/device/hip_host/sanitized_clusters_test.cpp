// Protects: sanitizers on kernels with clusters: what is right passes, and the cluster's barrier
// orders accesses to a block's own shared memory unless all arrivals are relaxed.

#include "tests/device/hip_host/sanitized_run.hpp"

namespace greta::test::sanitized_clusters_test {
namespace {

constexpr const char* head =
    "extern \"C\" __global__ void __cluster_dims__(2, 1, 1) test(int* out, int) {\n";

/// Two blocks that read from each other, send to each other and arrive at each other's barriers.
constexpr const char* right = R"(
  __shared__ __attribute__((aligned(16))) int own[64], received[4];
  __shared__ uint64_t barrier, taken;
  const int i = threadIdx.x, other = 1 - int(blockIdx.x);
  own[i] = 100 * int(blockIdx.x) + i;
  if (i == 0) {
    greta_host::counted_open(&barrier, 1);
    greta_host::counted_open(&taken, 64);
    greta_host::counted_expect(&barrier, 16);
  }
  __syncwarp();
  greta_host::cluster_arrive();
  greta_host::cluster_wait();
  const int read = greta_host::place_in_block(other, own)[63 - i];
  if (i == 0) greta_host::send(other, received, own, &barrier);
  greta_host::counted_wait(&barrier, 0);
  const int got = received[i % 4];
  greta_host::counted_arrive_at(other, &taken);
  greta_host::counted_wait(&taken, 0);
  own[63 - i] = read + got;
  __syncthreads();
  if (blockIdx.x == 1) out[i] = own[0] + i;
  greta_host::cluster_arrive_relaxed();
  greta_host::cluster_wait();
})";

TEST(HipHostSanitizedClusters, WhatIsRightPasses) {
  for (const Sanitize sanitize : {Sanitize::address, Sanitize::races}) {
    const auto outcome = run_sanitized(std::string(head) + right, sm_90, 64, 0, sanitize);
    EXPECT_TRUE(outcome.ok()) << outcome.output << outcome.errors;
    // own[0] of block 1: 0 of block 0, by its thread 63, and got 3
    EXPECT_EQ(outcome.output, "66\n") << outcome.errors;
  }
}

TEST(HipHostSanitizedClusters, RelaxedArrivalsOrderNothing) {
  const auto body = [](const std::string& arrive) {
    return head +
           ("__shared__ int tile[64];\ntile[threadIdx.x] = 1;\ngreta_host::" + arrive +
            "();\ngreta_host::cluster_wait();\nout[threadIdx.x] = tile[63 - threadIdx.x];\n}");
  };
  const auto relaxed = run_sanitized(body("cluster_arrive_relaxed"), sm_90, 64, 0, Sanitize::races);
  EXPECT_NE(relaxed.errors.find("data-race on byte"), std::string::npos) << relaxed.errors;
  const auto ordered = run_sanitized(body("cluster_arrive"), sm_90, 64, 0, Sanitize::races);
  EXPECT_TRUE(ordered.ok()) << ordered.errors;
}

}  // namespace
}  // namespace greta::test::sanitized_clusters_test
