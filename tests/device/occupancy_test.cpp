// Protects: the occupancy model of AMD and NVIDIA GPUs, with its limiting resource.

#include "runtime/device/hardware/occupancy.hpp"

#include <gtest/gtest.h>

#include <string>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/layers.hpp"

namespace greta::test::occupancy_test {
namespace {

struct Use {
  std::uint32_t registers = 0, shared_memory = 0, threads = 0;
};

Occupancy of(const std::string& architecture, const Use& use, std::uint32_t accumulators = 0) {
  KernelStatistics kernel;
  kernel.registers = use.registers;
  kernel.accumulator_registers = accumulators;
  kernel.scalar_registers = 40;
  kernel.shared_memory_bytes = use.shared_memory;
  return occupancy(*architecture_info(architecture), kernel, use.threads).value();
}

/// Returns "16 waves, 8 groups, threads".
std::string text(const Occupancy& occupancy) {
  const auto waves = std::to_string(occupancy.waves);
  return waves.substr(0, waves.find('.') + 2) + " waves, " + std::to_string(occupancy.groups) +
         " groups, " + std::string(occupancy.limit);
}

TEST(Occupancy, RegistersAreGivenAwayInGranules) {
  // CDNA 2 and 3: 512 registers per lane, in granules of 8.
  EXPECT_EQ(text(of("gfx90a", {64, 0, 256})), "8.0 waves, 8 groups, threads");
  EXPECT_EQ(text(of("gfx90a", {65, 0, 256})), "7.0 waves, 7 groups, registers");
  EXPECT_EQ(text(of("gfx942", {128, 0, 256})), "4.0 waves, 4 groups, registers");
  EXPECT_EQ(text(of("gfx942", {129, 0, 256})), "3.0 waves, 3 groups, registers");
  EXPECT_EQ(text(of("gfx950", {512, 0, 256})), "1.0 waves, 1 groups, registers");
  // CDNA 1: 256 of each kind, in granules of 4.
  EXPECT_EQ(text(of("gfx908", {84, 0, 256}, 128)), "2.0 waves, 2 groups, registers");
  EXPECT_EQ(text(of("gfx908", {85, 0, 256}, 20)), "2.0 waves, 2 groups, registers");
  EXPECT_EQ(text(of("gfx908", {84, 0, 256}, 20)), "3.0 waves, 3 groups, registers");
  // RDNA 2 and small RDNA 3: 1024, in granules of 16. Large RDNA 3 and RDNA 4: 1536, in granules of
  // 24.
  EXPECT_EQ(text(of("gfx1030", {64, 0, 256})), "16.0 waves, 8 groups, threads");
  EXPECT_EQ(text(of("gfx1103", {128, 0, 256})), "8.0 waves, 4 groups, registers");
  EXPECT_EQ(text(of("gfx1103", {130, 0, 128})), "7.0 waves, 7 groups, registers");
  EXPECT_EQ(text(of("gfx1100", {96, 0, 256})), "16.0 waves, 8 groups, threads");
  EXPECT_EQ(text(of("gfx1100", {97, 0, 128})), "12.0 waves, 12 groups, registers");
  EXPECT_EQ(text(of("gfx1201", {256, 0, 128})), "5.0 waves, 5 groups, registers");
}

TEST(Occupancy, OnlyWholeWorkgroupsAreResident) {
  // Registers for 5 waves per SIMD, 20 in total: two workgroups of eight.
  const Occupancy rdna = of("gfx1201", {256, 0, 256});
  EXPECT_EQ(text(rdna), "4.0 waves, 2 groups, registers");
  EXPECT_EQ(rdna.register_waves, 5U);
  EXPECT_EQ(text(of("gfx90a", {128, 0, 1024})), "4.0 waves, 1 groups, registers");
  EXPECT_EQ(text(of("gfx90a", {256, 0, 1024})), "0.0 waves, 0 groups, registers");
  EXPECT_EQ(text(of("gfx90a", {32, 0, 384})), "7.5 waves, 5 groups, threads");
}

TEST(Occupancy, SharedMemoryOfAUnitIsDividedAmongWorkgroups) {
  EXPECT_EQ(text(of("gfx942", {32, 32 << 10, 256})), "2.0 waves, 2 groups, shared memory");
  EXPECT_EQ(text(of("gfx942", {32, (32 << 10) + 1, 256})), "1.0 waves, 1 groups, shared memory");
  // 160 KiB in granules of 1280 bytes: 32 KiB need 32.5.
  EXPECT_EQ(text(of("gfx950", {32, 32 << 10, 256})), "4.0 waves, 4 groups, shared memory");
  EXPECT_EQ(text(of("gfx950", {32, 32000, 256})), "5.0 waves, 5 groups, shared memory");
  // A workgroup processor of RDNA has 128 KiB.
  EXPECT_EQ(text(of("gfx1100", {32, 32 << 10, 256})), "8.0 waves, 4 groups, shared memory");
  EXPECT_EQ(text(of("gfx942", {32, 65 << 10, 256})), "0.0 waves, 0 groups, shared memory");
}

TEST(Occupancy, UnitsHoldSoManyWorkgroups) {
  EXPECT_EQ(text(of("gfx90a", {32, 0, 64})), "8.0 waves, 32 groups, threads");
  EXPECT_EQ(text(of("gfx1100", {32, 0, 64})), "16.0 waves, 32 groups, threads");
  EXPECT_EQ(text(of("sm_90", {16, 0, 32})), "8.0 waves, 32 groups, threads");
  EXPECT_EQ(text(of("sm_86", {16, 0, 64})), "8.0 waves, 16 groups, threads");
}

TEST(Occupancy, ScalarRegistersLimitCdna) {
  KernelStatistics kernel;
  kernel.registers = 32;
  kernel.scalar_registers = 102;
  const auto cdna = occupancy(*architecture_info("gfx942"), kernel, 256).value();
  EXPECT_EQ(text(cdna), "7.0 waves, 7 groups, scalar registers");
  const auto rdna = occupancy(*architecture_info("gfx1100"), kernel, 256).value();
  EXPECT_EQ(text(rdna), "16.0 waves, 8 groups, threads");
}

/// Values of CUDA's occupancy calculator.
TEST(Occupancy, Nvidia) {
  EXPECT_EQ(text(of("sm_90", {32, 0, 256})), "16.0 waves, 8 groups, threads");
  EXPECT_EQ(text(of("sm_90", {128, 0, 256})), "4.0 waves, 2 groups, registers");
  EXPECT_EQ(text(of("sm_90", {168, 0, 128})), "3.0 waves, 3 groups, registers");
  EXPECT_EQ(text(of("sm_90", {255, 0, 128})), "2.0 waves, 2 groups, registers");
  // 228 KiB, of which each workgroup needs an additional 1 KiB.
  EXPECT_EQ(text(of("sm_90", {32, 113 << 10, 128})), "2.0 waves, 2 groups, shared memory");
  EXPECT_EQ(text(of("sm_90", {32, 114 << 10, 128})), "1.0 waves, 1 groups, shared memory");
  EXPECT_EQ(text(of("sm_80", {32, 40 << 10, 256})), "8.0 waves, 4 groups, shared memory");
  EXPECT_EQ(text(of("sm_70", {32, 48 << 10, 256})), "4.0 waves, 2 groups, shared memory");
}

TEST(Occupancy, IsUnknownWhereTheDeviceIs) {
  DeviceInfo device = *architecture_info("gfx942");
  EXPECT_TRUE(occupancy(device, {}, 64));
  EXPECT_FALSE(occupancy(device, {}, 0));
  device.unit_registers = 0;
  EXPECT_FALSE(occupancy(device, {}, 64));
  device = *architecture_info("gfx942");
  device.architecture = "lavapipe";
  EXPECT_FALSE(occupancy(device, {}, 64));
}

}  // namespace
}  // namespace greta::test::occupancy_test
