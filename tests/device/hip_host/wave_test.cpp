#include "tests/device/hip_host/host_device.hpp"

namespace greta::test {
namespace {

TEST(HipHostWave, Smoke) {
  for (const Imitated which : every_imitated) {
    HostDevice host(which);
    const auto out = host.upload(std::vector<float>(512, 0));
    host.run(HostDevice::source(R"(
extern "C" __global__ void test(float* out, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  tile[i] = i;
  __syncthreads();
  float v = tile[63 - i];
  out[blockIdx.x * blockDim.x + i] = __shfl_xor(v, 1) + n;
})", {64, 1, 1}), {8, 1, 1}, out, 7).value();
    const auto values = host.download<float>(out);
    for (int i = 0; i < 512; ++i) ASSERT_EQ(values[i], 63 - ((i % 64) ^ 1) + 7) << i;
  }
}

}  // namespace
}  // namespace greta::test
