// Protects: the reader of AMD code objects. It returns the statistics of kernels and survives
// arbitrary bytes.

#include "runtime/device/hip/code_object.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "runtime/device/system/process.hpp"
#include "tests/device/compilers/targets.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::code_object_test {

using namespace device::hip;
namespace {

using Binary = std::vector<std::byte>;

/// Two kernels: a small one, and one with shared memory and a private array that needs scratch.
const std::string two_kernels = R"(
extern "C" __global__ void small(float* p) { p[__builtin_amdgcn_workitem_id_x()] = 1; }
extern "C" __global__ void large(float* p, int n) {
  __shared__ float shared[1024];
  float array[100];
  const unsigned t = __builtin_amdgcn_workitem_id_x();
  for (int i = 0; i < 100; ++i) array[i] = p[i * 64 + t];
  shared[t] = array[n];
  __builtin_amdgcn_s_barrier();
  for (int i = 0; i < n; ++i) array[(i * 7) % 100] += shared[1023 - t];
  for (int i = 0; i < 100; ++i) p[i * 64 + t] = array[i];
}
)";

Binary compiled(const std::string& architecture) {
  return test::amd_compiler().compile(test::hip_source(two_kernels), architecture).value().binary;
}

std::vector<std::string> all_architectures() {
  auto names = test::hiprtc_architectures();
  const auto& more = test::clang_architectures();
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

TEST(CodeObject, StatisticsAreTheKernelsOwn) {
  for (const auto& architecture : all_architectures()) {
    const Binary binary = compiled(architecture);
    const auto small = read_statistics(binary, "small").value();
    const auto large = read_statistics(binary, "large").value();
    EXPECT_LT(small.registers, large.registers) << architecture;
    EXPECT_LT(small.code_bytes, large.code_bytes);
    EXPECT_GT(small.code_bytes, 16U);
    EXPECT_GT(small.scalar_registers, 0U);
    EXPECT_EQ(small.shared_memory_bytes, 0U);
    EXPECT_EQ(small.scratch_bytes, 0U);
    EXPECT_EQ(large.shared_memory_bytes, 4096U);
    EXPECT_GE(large.scratch_bytes, 400U);
    EXPECT_EQ(small.accumulator_registers, 0U);
    EXPECT_EQ(small.spilled_registers, 0U);
  }
}

TEST(CodeObject, ContentsAndDescriptorsAreThoseOfTheKernels) {
  for (const auto& architecture : all_architectures()) {
    const Binary binary = compiled(architecture);
    const auto contents = read_contents(binary).value();
    EXPECT_EQ(contents.architecture, architecture);
    ASSERT_EQ(contents.kernels.size(), 2U);
    EXPECT_EQ(contents.kernels[0].name, "small");
    EXPECT_EQ(contents.kernels[1].name, "large");
    EXPECT_GE(contents.kernels[0].threads, 64U);
    const auto descriptor = read_descriptor(binary, "small").value();
    EXPECT_TRUE(descriptor.argument_pointer) << architecture;
    EXPECT_GE(descriptor.user_registers, 2U);
    EXPECT_EQ(read_descriptor(binary, "none").failure().status, Status::invalid_argument);
  }
}

TEST(CodeObject, SpillsAreCounted) {
  // 200 values are live at once, and each thread gets at most a 16th of a SIMD's register file.
  const auto source = test::hip_source(R"(
extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(64, 64), amdgpu_waves_per_eu(8, 8)))
void kernel(float* p) {
  const unsigned t = __builtin_amdgcn_workitem_id_x();
  float a[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) a[i] = p[i * 64 + t];
  __builtin_amdgcn_s_barrier();
#pragma unroll
  for (int i = 0; i < 200; ++i) p[i * 64 + t] = a[199 - i];
}
)");
  const auto binary = test::amd_compiler().compile(source, "gfx90a").value().binary;
  const auto statistics = read_statistics(binary, "kernel").value();
  EXPECT_EQ(statistics.registers, 64U);
  EXPECT_GT(statistics.spilled_registers, 50U);
  EXPECT_GT(statistics.scratch_bytes, 200U);
}

TEST(CodeObject, AKernelThatIsNotThereIsNamed) {
  const auto read = read_statistics(compiled("gfx90a"), "absent");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.failure().message, "the code object's metadata has no kernel absent");
  EXPECT_EQ(read_statistics({}, "small").failure().message, "this is not an AMD code object");
}

TEST(CodeObject, BundlesAreUnpacked) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "kernels.hip";
  std::ofstream(file) << test::hip_source(two_kernels).text;
  const auto bundle = run_process({test::clang_name(), "-x", "hip", file, "-o", "-",
                                   "--cuda-device-only", "--gpu-bundle-output", "-nogpuinc",
                                   "-nogpulib", "-O3", "--offload-arch=gfx906,gfx90a"},
                                  {}, std::chrono::seconds(60))
                          .value();
  ASSERT_TRUE(bundle.ok()) << bundle.errors;
  Binary binary(bundle.output.size());
  std::memcpy(binary.data(), bundle.output.data(), binary.size());
  const auto code = extract_code_object(binary, "gfx90a");
  ASSERT_TRUE(code) << code.failure().message;
  const auto read = read_statistics(*code, "large");
  EXPECT_TRUE(read) << read.failure().message;
  EXPECT_EQ(extract_code_object(binary, "gfx90").failure().message,
            "an offload bundle without a code object for gfx90");
  for (std::size_t size = 0; size < 400; ++size) {
    const Binary cut(binary.begin(), binary.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(extract_code_object(cut, "gfx90a"));
  }
}

TEST(CodeObject, WhatEndsTooEarlyIsReadOrRefused) {
  const Binary whole = compiled("gfx90a");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto read = read_statistics(std::span(whole).first(size), "large");
    EXPECT_TRUE(read || read.failure().status == Status::invalid_argument);
  }
}

/// Random changes of bytes, mostly in headers, notes and symbols, which the reader interprets.
TEST(CodeObject, NoBytesBreakTheReader) {
  std::mt19937_64 random(3);
  int refused = 0;
  for (const auto& architecture : {std::string("gfx90a"), test::clang_architectures().back()}) {
    const Binary whole = compiled(architecture);
    for (int round = 0; round < 20000; ++round) {
      Binary mutant = whole;
      const std::size_t reach = round % 3 == 0 ? 64 : round % 3 == 1 ? 1600 : mutant.size();
      for (std::uint64_t changes = random() % 8 + 1; changes > 0; --changes) {
        mutant[random() % reach] = static_cast<std::byte>(random());
      }
      if (!read_statistics(mutant, "large")) ++refused;
      static_cast<void>(read_descriptor(mutant, "large"));
      if (round % 8 == 0) static_cast<void>(read_contents(mutant));
      static_cast<void>(extract_code_object(std::move(mutant), architecture));
    }
  }
  EXPECT_GT(refused, 5000);
  EXPECT_LT(refused, 39000);
}

/// Metadata with a million nested arrays must not exhaust the stack.
TEST(CodeObject, DeepNestingIsRefused) {
  Binary binary = compiled("gfx90a");
  const std::string head("amdhsa.kernels");
  const auto at = std::search(binary.begin(), binary.end(), head.begin(), head.end(),
                              [](std::byte a, char b) { return a == std::byte(b); });
  ASSERT_NE(at, binary.end());
  // The note's size is 12 bytes before its description, which begins 2 bytes before the first key.
  const auto description = static_cast<std::size_t>(at - binary.begin()) - 2;
  const std::uint32_t size = 8U << 20;
  Binary nested(binary.begin(), binary.begin() + static_cast<std::ptrdiff_t>(description));
  nested.resize(description + size, std::byte{0x91});
  std::memcpy(nested.data() + description - 16, &size, sizeof size);
  // Makes every program header of notes cover it.
  std::uint64_t headers = 0, whole = size + 64;
  std::memcpy(&headers, nested.data() + 32, sizeof headers);
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t header = headers + i * 56;
    std::uint32_t type = 0;
    std::memcpy(&type, nested.data() + header, sizeof type);
    if (type == 4) std::memcpy(nested.data() + header + 32, &whole, sizeof whole);
  }
  nested.resize(nested.size() + 64);
  const auto read = read_statistics(nested, "large");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.failure().message, "the code object's metadata has no kernel large");
}

}  // namespace
}  // namespace greta::test::code_object_test
