// Protects: products of warpgroups (wgmma) on hip-host run when the thread waits for their group:
// sums stay what they were until then, and operands are read then. At some waits other waves run
// first.

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::products_test {
namespace {

/// Runs a kernel whose operands are ones: `a` in registers, and `b` the elements of `tile` in
/// shared memory. `i` is the thread. Returns `count` outputs.
std::vector<float> run(const std::string& rest, unsigned threads, unsigned blocks,
                       std::size_t count) {
  HostDevice host(sm_80);
  const auto out = host.upload(std::vector<float>(count));
  const std::string kernel = R"(
extern "C" __global__ void test(float* out) {
  __shared__ __attribute__((aligned(1024))) unsigned char bytes[256];
  uint16_t* const tile = reinterpret_cast<uint16_t*>(bytes);
  const unsigned i = threadIdx.x;
  if (i < 128) tile[i] = 0x3c00;
  __syncthreads();
  const greta_host::MatrixDescriptor b{bytes, 0, 128, 256, 1};
  uint32_t a[4] = {0x3c003c00, 0x3c003c00, 0x3c003c00, 0x3c003c00};
)" + rest + "}";
  host.run(HostDevice::source(kernel, {threads, 1, 1}), {blocks, 1, 1}, out).value();
  return host.download<float>(out);
}

TEST(HipHostProducts, RunWhenTheirGroupIsWaitedFor) {
  // Between the waits B becomes twos, and half of A's k zeros.
  const auto result = run(R"(
  float d[4] = {5, 5, 5, 5};
  greta_host::wgmma_m64k16_f16(d, a, b, false, false);
  greta_host::wgmma_commit();
  greta_host::wgmma_m64k16_f16(d, a, b, false, true);
  greta_host::wgmma_commit();
  greta_host::wgmma_m64k16_f16(d, a, b, false, true);  // in no group
  out[i] = d[0];
  greta_host::wgmma_wait(1);
  out[128 + i] = d[1];
  __syncthreads();
  tile[i] = 0x4000;
  __syncthreads();
  a[3] = 0;
  greta_host::wgmma_wait(0);
  out[256 + i] = d[2];
  greta_host::wgmma_commit();
  greta_host::wgmma_wait(0);
  out[384 + i] = d[3];
)",
                          128, 1, 4 * 128);
  const float expected[] = {5, 16, 16 + 16, 16 + 16 + 16};
  for (unsigned i = 0; i < result.size(); ++i) {
    ASSERT_EQ(result[i], expected[i / 128]) << "thread " << i % 128 << " wait " << i / 128;
  }
}

/// The last wave overwrites an operand as soon as it may, and the others say too early that it may.
/// In one of the blocks it runs before the products do.
TEST(HipHostProducts, ReadOperandsThatWereGivenFreeTooEarly) {
  const auto result = run(R"(
  float d[4] = {};
  if (i < 128) {
    greta_host::wgmma_m64k16_f16(d, a, b, false, false);
    greta_host::wgmma_commit();
    greta_host::barrier_arrive(1, 160);
    greta_host::wgmma_wait(0);
  } else {
    greta_host::barrier_sync(1, 160);
    for (unsigned at = i - 128; at < 128; at += 32) tile[at] = 0x4000;
  }
  if (i < 128) out[blockIdx.x * 128 + i] = d[0];
)",
                          160, 2, 2 * 128);
  for (unsigned i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], i < 128 ? 16 : 32) << i;
}

}  // namespace
}  // namespace greta::test::products_test
