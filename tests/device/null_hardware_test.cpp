// Protects: compiling for absent AMD GPUs with Mesa's driver, which executes nothing.

#include <stdlib.h>

#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::null_hardware_test {

namespace {

/// Mesa's AMD driver for an absent GPU. Debian and Ubuntu ship it together with lavapipe.
class CompileOnly : public ::testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { ::unsetenv("RADV_FORCE_FAMILY"); }

  /// Opens the GPU with the name that this machine's Mesa uses.
  static std::unique_ptr<Device> open() {
    for (const std::string& name : null_hardware_names(GetParam())) {
      ::setenv("RADV_FORCE_FAMILY", name.c_str(), 1);
      if (auto device = open_null_hardware(name, {})) return *std::move(device);
    }
    throw Error(std::string("no null hardware ") + GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(Gpus, CompileOnly,
                         ::testing::Values("gfx1103_r1", "gfx1100", "navi21", "renoir"),
                         [](const auto& gpu) { return std::string(gpu.param); });

TEST_P(CompileOnly, CompilesAndSaysWhatTheKernelNeeds) {
  const auto device = open();
  const auto kernel = device->compile(affine_source()).value();
  const KernelStatistics statistics = kernel->statistics();
  EXPECT_GT(statistics.registers, 0U);
  EXPECT_GT(statistics.scalar_registers, 0U);
  EXPECT_GT(statistics.code_bytes, 0U);
  EXPECT_GT(statistics.subgroups_per_simd, 0U);
  EXPECT_GT(statistics.latency, 0);
  EXPECT_GT(statistics.inverse_throughput, 0);
  EXPECT_FALSE(statistics.spills());
  EXPECT_EQ(statistics.matrix_instructions, 0U);
  const std::string listing = kernel->listing().value();
  EXPECT_NE(listing.find("s_endpgm"), std::string::npos) << listing;
}

/// 600 values that are live at once exceed the registers of every GPU.
TEST_P(CompileOnly, ReportsSpills) {
  KernelSource source = affine_source();
  source.text = glsl(R"(
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Arguments { Floats x; uint n; uint rounds; float a; float b; };
void main() {
  float all[600];
  for (uint i = 0; i < 600; ++i) all[i] = x.at[i * n + gl_GlobalInvocationID.x];
  for (uint round = 0; round < rounds; ++round) {
    for (uint i = 0; i < 600; ++i) all[i] = all[i] * a + all[599 - i];
  }
  for (uint i = 0; i < 600; ++i) x.at[i * n + gl_GlobalInvocationID.x] = all[i];
}
)");
  const auto device = open();
  const auto statistics = device->compile(source).value()->statistics();
  EXPECT_TRUE(statistics.spills());
  EXPECT_GT(statistics.scratch_bytes, 0U);
}

TEST_P(CompileOnly, ExecutesNothing) {
  const auto device = open();
  const auto record_nothing = [](Stream&) { return Result<void>{}; };
  for (const Failure& failure :
       {device->create_stream().failure(), device->allocate(16).failure(),
        device->create_event().failure(), device->create_graph(record_nothing).failure()}) {
    EXPECT_EQ(failure.status, Status::unavailable);
    EXPECT_NE(failure.message.find("executes nothing"), std::string::npos) << failure.message;
  }
  EXPECT_EQ(device->memory().reserved_bytes, 0U);
  device->trim();
  EXPECT_TRUE(device->compile(affine_source())) << "the device goes on";
}

TEST_P(CompileOnly, IsTheGpuThatWasAskedFor) {
  open();
  const auto other = open_null_hardware("vega20", {});
  EXPECT_EQ(other.failure().status, Status::unavailable) << "the environment says another";
  ::unsetenv("RADV_FORCE_FAMILY");
  EXPECT_EQ(open_null_hardware(GetParam(), {}).failure().status, Status::unavailable);
}

/// Its description supports the same constraints as that of a real device.
TEST_P(CompileOnly, IsDescribed) {
  const auto device = open();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.vendor, "AMD");
  EXPECT_TRUE(info.architecture.starts_with("gfx")) << info.architecture;
  EXPECT_GT(info.memory_bytes, 0U);
  EXPECT_GT(info.max_allocation_bytes, 0U);
  EXPECT_EQ(info.shared_memory_bytes, 65536U);
  EXPECT_EQ(info.max_subgroup_size, 64U);
  EXPECT_TRUE(info.f16_storage);
}

TEST(CompileOnlyNames, AreThoseOfAllReleases) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(null_hardware_names("gfx1103_r1"), (Names{"gfx1103_r1", "phoenix"}));
  EXPECT_EQ(null_hardware_names("phoenix"), (Names{"phoenix", "gfx1103_r1"}));
  EXPECT_EQ(null_hardware_names("navi21"), Names{"navi21"});
}

TEST(CompileOnlyNames, UnknownOnesAreRefused) {
  ::setenv("RADV_FORCE_FAMILY", "gfx9999", 1);
  const auto device = open_null_hardware("gfx9999", {});
  ::unsetenv("RADV_FORCE_FAMILY");
  EXPECT_EQ(device.failure().status, Status::unavailable);
  EXPECT_NE(device.failure().message.find("gfx9999"), std::string::npos);
}

}  // namespace

}  // namespace greta::test::null_hardware_test
