// The real NVRTC, which needs no GPU.

#include <gtest/gtest.h>

#include "runtime/device/hip/compiler.hpp"
#include "tests/device/compilers/targets.hpp"

namespace greta::hip {
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
}  // namespace greta::hip
