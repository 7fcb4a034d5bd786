// Protects: GRETA's occupancy equals the occupancy that clang reports for its kernels.

#include "runtime/device/hardware/occupancy.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hip/code_object.hpp"
#include "tests/device/compilers/targets.hpp"
#include "tests/layers.hpp"

namespace greta::test::occupancy_test {

using namespace device::hip;
namespace {

struct Shape {
  int threads, values, shared_floats;
};

// The sizes of shared memory are multiples of every granule, because clang does not round up.
const std::vector<Shape> shapes{
    {64, 4, 1280},   {64, 30, 5120},   {128, 50, 1280},   {128, 12, 7680},  {192, 20, 3840},
    {256, 4, 1280},  {256, 28, 2560},  {256, 40, 1280},   {256, 60, 1280},  {256, 80, 3840},
    {256, 95, 1280}, {256, 140, 1280}, {256, 200, 1280},  {320, 8, 5120},   {512, 10, 1280},
    {512, 45, 7680}, {1024, 5, 1280},  {1024, 20, 15360}, {64, 120, 15360}, {128, 3, 5120}};

/// Returns one kernel per shape, which keeps `values` numbers per thread live.
KernelSource kernels() {
  std::string text = R"(
template <int threads, int values, int floats>
__attribute__((device)) inline void work(float* p, const float* q) {
  __shared__ float shared[floats];
  const unsigned t = __builtin_amdgcn_workitem_id_x();
  float a[values];
#pragma unroll
  for (int i = 0; i < values; ++i) a[i] = q[t + i * threads];
  shared[t * 7 % floats] = a[values / 2];
  __builtin_amdgcn_s_barrier();
  for (int j = 0; j < 100; ++j) {
    const float x = q[j * threads + t];
#pragma unroll
    for (int i = 0; i < values; ++i) a[i] += x * q[i];
  }
#pragma unroll
  for (int i = 0; i < values; ++i) p[t + i * threads] = a[i] + shared[(t * 11 + i) % floats];
}
)";
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    text += fmt::format(
        "extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size({0}, {0})))\n"
        "void kernel_{3}(float* p, const float* q) {{ work<{0}, {1}, {2}>(p, q); }}\n",
        shapes[i].threads, shapes[i].values, shapes[i].shared_floats, i);
  }
  auto source = test::hip_source(text);
  source.options = {"-Rpass-analysis=kernel-resource-usage"};
  return source;
}

/// Returns the number after a label in clang's remarks on a kernel; -1 if there is none.
int remark(const std::string& log, const std::string& kernel, const std::string& label) {
  const auto start = log.find("Function Name: " + kernel + " ");
  if (start == std::string::npos) return -1;
  const auto at = log.find(label, start);
  return at == std::string::npos ? -1 : std::atoi(log.c_str() + at + label.size());
}

void expect_the_same(const std::string& architecture) {
  SCOPED_TRACE(architecture);
  const auto device = *architecture_info(architecture);
  const auto compiled = test::clang_compiler().compile(kernels(), architecture);
  ASSERT_TRUE(compiled) << compiled.failure().log;
  std::set<int> seen;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto [threads, values, floats] = shapes[i];
    const auto name = fmt::format("kernel_{}", i);
    const auto statistics = read_statistics(compiled->binary, name).value();
    const auto ours = occupancy(device, statistics, static_cast<std::uint32_t>(threads)).value();
    const auto said = [&](const char* label) { return remark(compiled->log, name, label); };
    const int least = static_cast<int>(
        std::min({ours.register_waves, ours.scalar_register_waves, ours.shared_memory_waves}));
    EXPECT_EQ(least, said("Occupancy [waves/SIMD]: "))
        << fmt::format("{} threads, {} values, {} floats", threads, values, floats);
    EXPECT_EQ(static_cast<int>(statistics.shared_memory_bytes), said("LDS Size [bytes/block]: "));
    EXPECT_EQ(static_cast<int>(statistics.spilled_registers), said("VGPRs Spill: "));
    EXPECT_EQ(static_cast<int>(statistics.scratch_bytes), said("ScratchSize [bytes/lane]: "));
    EXPECT_LE(ours.waves, least) << "whole workgroups are never more";
    seen.insert(least);
  }
  EXPECT_GE(seen.size(), 5U) << "the kernels are too much alike";
}

// The newest of the architectures that clang knows here stands for the others.
TEST(ClangOccupancy, IsTheSame) {
  for (const char* architecture : {"gfx90a", "gfx1030"}) expect_the_same(architecture);
  expect_the_same(test::clang_architectures().back());
}

/// For scripts/test.sh --all.
TEST(ClangOccupancy, MostAreTheSame) {
  for (const auto& architecture : test::clang_architectures()) expect_the_same(architecture);
}

}  // namespace
}  // namespace greta::test::occupancy_test
