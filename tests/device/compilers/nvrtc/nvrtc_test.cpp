// Protects: compiling with the real NVRTC, which needs no GPU.

#include <gtest/gtest.h>

#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/hip/cubin.hpp"
#include "tests/device/compilers/targets.hpp"
#include "tests/layers.hpp"

namespace greta::test::nvrtc_test {

using namespace device::hip;
namespace {

Compiler& nvrtc() {
  static const auto compiler = std::move(create_nvidia_compiler({}).value());
  return *compiler;
}

KernelSource kernel(const std::string& body) {
  auto source = test::hip_source({});
  source.text = "extern \"C\" __global__ void kernel(float* p) { " + body + " }\n";
  return source;
}

TEST(Nvrtc, GivesACubin) {
  EXPECT_EQ(nvrtc().version().find("NVRTC 1"), 0U) << nvrtc().version();
  auto source = kernel("p[threadIdx.x] = VALUE;");
  source.options = {"-DVALUE=3"};
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const auto compiled = nvrtc().compile(source, architecture);
    ASSERT_TRUE(compiled) << compiled.failure().log;
    ASSERT_GT(compiled->binary.size(), 20U);
    EXPECT_EQ(compiled->binary[18], std::byte{190}) << "ELF of CUDA's machine";
  }
}

// Detects a newer NVRTC that writes another format.
TEST(Nvrtc, ItsCubinsAreUnderstood) {
  auto source = kernel(
      "__shared__ float tile[64]; float array[100];\n"
      "#pragma unroll 1\n"
      "for (int i = 0; i < 100; ++i) array[i] = p[i * 64 + threadIdx.x];\n"
      "tile[threadIdx.x] = array[int(p[0])]; __syncthreads(); float d[4] = {};\n"
      "#pragma unroll\n"
      "for (int i = 0; i < 5; ++i) asm "
      "volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};\" : \"+f\"(d[0]), \"+f\"(d[1]), "
      "\"+f\"(d[2]), \"+f\"(d[3]) : \"r\"(threadIdx.x));\n"
      "p[threadIdx.x] = tile[63 - threadIdx.x] + d[0] + d[1] + d[2] + d[3];");
  for (const char* architecture : {"sm_80", "sm_90"}) {
    const auto compiled = nvrtc().compile(source, architecture);
    ASSERT_TRUE(compiled) << compiled.failure().log;
    const auto read = read_cubin_statistics(compiled->binary, "kernel");
    ASSERT_TRUE(read) << read.failure().message;
    EXPECT_GT(read->registers, 4U);
    EXPECT_LT(read->registers, 64U);
    EXPECT_EQ(read->scratch_bytes, 400U);
    EXPECT_EQ(read->shared_memory_bytes, 256U);
    EXPECT_EQ(read->matrix_instructions, 5U);
    EXPECT_GT(read->code_bytes, 256U);
    EXPECT_EQ(read->spilled_registers, 0U);
  }
}

TEST(Nvrtc, ErrorsNameTheKernelAndTheLine) {
  const auto compiled = nvrtc().compile(kernel("oops;"), "sm_90");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.failure().status, Status::compile);
  EXPECT_EQ(compiled.failure().message, "test/kernel(1): error: identifier \"oops\" is undefined");
}

TEST(Nvrtc, AnUnknownArchitectureIsNamed) {
  const auto compiled = nvrtc().compile(kernel(""), "sm_1");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.failure().status, Status::unavailable);
  EXPECT_EQ(compiled.failure().message.find("nothing compiles for sm_1: NVRTC 1"), 0U);
}

}  // namespace
}  // namespace greta::test::nvrtc_test
