// Protects: kernels compiled for devices that are elsewhere are of the form and the architecture
// that their target names.
#include "runtime/device/binary_target.hpp"

#include <gtest/gtest.h>

#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hip/code_object.hpp"
#include "tests/device/compilers/targets.hpp"
#include "tests/layers.hpp"

namespace greta::test::binary_target_test {
namespace {

TEST(BinaryTarget, AmdCodeObjectsAreOfTheArchitectureAndNeedNoDevice) {
  const auto source = test::hip_source("extern \"C\" __global__ void fill(float* p) { p[0] = 1; }");
  for (const std::string& architecture : test::clang_architectures()) {
    const DeviceInfo device = architecture_info(architecture).value();
    EXPECT_EQ(binary_targets(device), std::vector<std::string>{architecture});
    const auto compiler = create_binary_compiler(device, {}).value();
    const auto binaries = compiler->compile(source).value();
    ASSERT_EQ(binaries.size(), 1U);
    EXPECT_EQ(binaries[0].target, architecture);
    EXPECT_FALSE(binaries[0].compiler.empty());
    EXPECT_EQ(hip::read_contents(binaries[0].binary).value().architecture, architecture);
  }
}

/// A kernel that computes something else for each extension of cooperative matrices.
KernelSource glsl(const std::string& body) {
  KernelSource source;
  source.name = "test";
  source.language = Language::glsl;
  source.text =
      "#version 460\nlayout(local_size_x = 1) in;\n"
      "layout(std430, set = 0, binding = 0) buffer Out { float x; };\nvoid main() {" +
      body + "\n}\n";
  return source;
}

TEST(BinaryTarget, SpirvIsForAnyDeviceUnlessItsMatricesAreOfAnExtension) {
  DeviceInfo device;
  device.backend = Api::vulkan;
  device.language = Language::glsl;
  const auto compiler = create_binary_compiler(device, {}).value();
  const auto targets = [&](const std::string& body) {
    std::vector<std::string> names;
    const auto binaries = compiler->compile(glsl(body)).value();
    for (const TargetBinary& one : binaries) names.push_back(one.target);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(targets("x = 1;"), Names{"spirv"});
  EXPECT_EQ(targets("x = 1; // GRETA_MATRIX_KHR does not matter"), Names{"spirv"});
  EXPECT_EQ(targets("\n#ifdef GRETA_MATRIX_KHR\nx = 2;\n#else\nx = 1;\n#endif\n"),
            (Names{"spirv khr", "spirv nv"}));
  EXPECT_EQ(targets("\n#ifndef GRETA_MATRIX_KHR\n#error not here\n#endif\nx = 1;"),
            Names{"spirv khr"});
  const auto failed = compiler->compile(glsl("x = y;"));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.failure().status, Status::compile);
}

}  // namespace
}  // namespace greta::test::binary_target_test
