// Protects: architectures and identities of devices. Cards of a model share a fingerprint through
// every API, and a card is recognised across APIs.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "runtime/device/device_info.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hardware/known_gpus.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "runtime/device/vulkan/spirv_info.hpp"
#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::hardware_test {

namespace {

constexpr std::uint64_t mebibyte = 1 << 20;

TEST(Hardware, ArchitecturesByName) {
  EXPECT_EQ(gpu_architecture("NVIDIA H200"), "sm_90");
  EXPECT_EQ(gpu_architecture("NVIDIA A100-SXM4-80GB"), "sm_80");
  EXPECT_EQ(gpu_architecture("NVIDIA GeForce RTX 4090"), "sm_89");
  EXPECT_EQ(gpu_architecture("NVIDIA L40S"), "sm_89");
  EXPECT_EQ(gpu_architecture("NVIDIA RTX A3000 Laptop GPU"), "sm_86");
  EXPECT_EQ(gpu_architecture("NVIDIA A30"), "sm_80");
  EXPECT_EQ(gpu_architecture("AMD Radeon RX 7900 XTX (RADV NAVI31)"), "gfx1100");
  EXPECT_EQ(gpu_architecture("AMD Radeon 780M (RADV GFX1103_R1)"), "gfx1103");
  EXPECT_EQ(gpu_architecture("AMD Radeon Graphics (RADV RENOIR)"), "gfx90c");
  EXPECT_EQ(gpu_architecture("Null hardware (RADV GFX1103_R1)"), "gfx1103");
  EXPECT_EQ(gpu_architecture("Null hardware (RADV NAVI21)"), "gfx1030");
  EXPECT_EQ(gpu_architecture("AMD Radeon RX 580 Series (RADV POLARIS10)"), "gfx803");
  EXPECT_EQ(gpu_architecture("AMD Instinct MI300X"), "gfx942");
  EXPECT_EQ(gpu_architecture("Intel(R) Arc(tm) A770 Graphics (DG2)"),
            "intel_r_arc_tm_a770_graphics_dg2");
}

/// Partitions of a card, and the MI300A, have fewer dies than the largest cards.
TEST(Hardware, AcceleratorDiesByUnits) {
  DeviceInfo info;
  const auto dies = [&](const char* architecture, std::uint32_t units) {
    info.architecture = architecture;
    info.compute_units = units;
    return accelerator_dies(info);
  };
  EXPECT_EQ(dies("gfx942", 304), 8);  // MI300X
  EXPECT_EQ(dies("gfx942", 228), 6);  // MI300A
  EXPECT_EQ(dies("gfx942", 38), 1);
  EXPECT_EQ(dies("gfx950", 256), 8);  // MI350X
  EXPECT_EQ(dies("gfx942", 0), 1);
  EXPECT_EQ(dies("gfx90a", 104), 1);
  EXPECT_EQ(dies("sm_90", 132), 1);
  EXPECT_EQ(dies("host-gfx942", 2), 8);
}

TEST(Hardware, LastLevelCaches) {
  const auto cache = [](std::string_view name) {
    return gpu_last_level_cache_bytes(name, gpu_architecture(name)) / mebibyte;
  };
  EXPECT_EQ(cache("AMD Instinct MI300X"), 256U) << "not its L2, which has 4 MiB";
  EXPECT_EQ(cache("NVIDIA H200"), 64U);
  EXPECT_EQ(cache("NVIDIA A100-SXM4-80GB"), 40U);
  EXPECT_EQ(cache("AMD Radeon RX 7900 XTX (RADV NAVI31)"), 96U);
  EXPECT_EQ(cache("AMD Radeon RX 7900 XT (RADV NAVI31)"), 80U);
  EXPECT_EQ(cache("AMD Radeon 780M (RADV GFX1103_R1)"), 4U);
  EXPECT_EQ(cache("NVIDIA GeForce RTX 3090"), 6U);
  EXPECT_EQ(cache("Unheard Of 1"), 256U);
}

TEST(Hardware, TheHostIsKnown) {
  const HostProcessor host = host_processor();
  EXPECT_GE(host.cores, 1U);
  EXPECT_GE(host.last_level_cache_bytes, 64U << 10);
}

TEST(DeviceInfo, TheFingerprintIsOfTheHardwareOnly) {
  DeviceInfo info;
  info.backend = Api::vulkan;
  info.name = "llvmpipe (LLVM 15.0.6, 256 bits)";
  info.architecture = "lavapipe";
  info.card.uuid = "0123";
  const std::string before = info.fingerprint();
  info.name = "llvmpipe (LLVM 19.1.0, 256 bits)";
  info.driver = "newer";
  info.compiler = "newer";
  info.index = 3;
  EXPECT_EQ(info.fingerprint(), before);
  info.card.uuid = "0124";
  EXPECT_NE(info.fingerprint(), before);
}

DeviceInfo first_of_eight() {
  DeviceInfo info;
  info.backend = Api::hip;
  info.name = "AMD Instinct MI300X";
  info.vendor = "AMD";
  info.architecture = "gfx942";
  info.kind = DeviceKind::discrete_gpu;
  info.card = {"3031", "0000:c1:00.0"};
  info.compute_units = 304;
  info.memory_bytes = 206'141'652'992;
  return info;
}

TEST(DeviceInfo, CardsOfOneModelHaveOneFingerprint) {
  const DeviceInfo one = first_of_eight();
  DeviceInfo other = one;
  other.card = {"3032", "0000:c2:00.0"};
  other.memory_bytes -= 100 << 20;  // another driver reserves more memory
  other.unified_memory = !one.unified_memory;
  EXPECT_EQ(other.fingerprint(), one.fingerprint());
}

TEST(DeviceInfo, ModelsDifferInEachPartOfTheKey) {
  const DeviceInfo one = first_of_eight();
  const std::vector<std::function<void(DeviceInfo&)>> changes{
      [](DeviceInfo& info) { info.backend = Api::vulkan; },
      [](DeviceInfo& info) { info.vendor = "Another"; },
      [](DeviceInfo& info) { info.architecture = "gfx950"; },
      [](DeviceInfo& info) { info.name = "AMD Instinct MI300X VF"; },
      [](DeviceInfo& info) { info.compute_units = 38; },
      [](DeviceInfo& info) { info.memory_bytes = 256ULL << 30; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    DeviceInfo other = one;
    changes[i](other);
    EXPECT_NE(other.fingerprint(), one.fingerprint()) << i;
  }
}

TEST(DeviceInfo, MemoryIsCountedInNominalSizes) {
  const auto fingerprint = [](std::uint64_t bytes, DeviceKind kind = DeviceKind::discrete_gpu) {
    DeviceInfo info = first_of_eight();
    info.memory_bytes = bytes;
    info.kind = kind;
    return info.fingerprint();
  };
  const std::uint64_t gib = 1ULL << 30;
  EXPECT_EQ(fingerprint(8 * gib), fingerprint(8 * gib - (200 << 20)));
  EXPECT_NE(fingerprint(8 * gib), fingerprint(8 * gib + 1));
  EXPECT_NE(fingerprint(8 * gib), fingerprint(12 * gib));
  EXPECT_EQ(fingerprint(150'754'820'096), fingerprint(150'109'880'320));  // an H200, two APIs
  EXPECT_NE(fingerprint(40 * gib), fingerprint(80 * gib));
  // System memory is not part of the device.
  EXPECT_EQ(fingerprint(8 * gib, DeviceKind::integrated_gpu),
            fingerprint(12 * gib, DeviceKind::integrated_gpu));
  EXPECT_EQ(fingerprint(8 * gib, DeviceKind::cpu), fingerprint(12 * gib, DeviceKind::cpu));
}

TEST(DeviceInfo, TheProductNameIsWithoutADriversAdditions) {
  EXPECT_EQ(product_name("llvmpipe (LLVM 15.0.6, 256 bits)"), "llvmpipe");
  EXPECT_EQ(product_name("AMD Radeon RX 7900 XTX (RADV NAVI31)"), "AMD Radeon RX 7900 XTX");
  EXPECT_EQ(product_name("Intel(R) Arc(tm) A770 Graphics (DG2)"), "Intel(R) Arc(tm) A770 Graphics");
  EXPECT_EQ(product_name("Intel(R) Arc(tm) A770"), "Intel(R) Arc(tm) A770");
  EXPECT_EQ(product_name("GPU (one) (two)"), "GPU");
  EXPECT_EQ(product_name("Intel(R) UHD Graphics 620 (WHL GT2) rev 3"),
            "Intel(R) UHD Graphics 620 (WHL GT2) rev 3");
  EXPECT_EQ(product_name(" (nothing else)"), " (nothing else)");
  EXPECT_EQ(product_name(")"), ")");
  EXPECT_EQ(product_name(""), "");
}

DeviceInfo seen(Api backend, const std::string& pci, const std::string& uuid) {
  DeviceInfo info;
  info.backend = backend;
  info.kind = DeviceKind::discrete_gpu;
  info.card.pci_address = pci;
  info.card.uuid = uuid;
  return info;
}

TEST(SameCard, IsTheOneInTheSamePlace) {
  // AMD: HIP reports the card's serial number, Vulkan drivers a UUID made from the PCI address.
  const auto hip = seen(Api::hip, "0000:c1:00.0", "3031");
  EXPECT_TRUE(same_card(hip, seen(Api::vulkan, "0000:c1:00.0", "c100")));
  EXPECT_FALSE(same_card(hip, seen(Api::vulkan, "0000:c2:00.0", "3031")));
}

TEST(SameCard, IsTheOneWithTheSameUuidWhereNobodyTellsThePlace) {
  const auto hip = seen(Api::hip, "0000:c1:00.0", "3031");
  EXPECT_TRUE(same_card(hip, seen(Api::vulkan, "", "3031")));
  EXPECT_FALSE(same_card(hip, seen(Api::vulkan, "", "3032")));
  EXPECT_FALSE(same_card(seen(Api::hip, "", ""), seen(Api::vulkan, "", "")));
  EXPECT_TRUE(same_card(seen(Api::hip, "", ""), seen(Api::hip, "", "")));
}

TEST(SameCard, WhatActsOnTheCpuIsNoCard) {
  auto lavapipe = seen(Api::vulkan, "", "99");
  auto host = seen(Api::hip_host, "", "99");
  auto sister = host;
  sister.index = 1;
  for (auto* const info : {&lavapipe, &host, &sister}) info->kind = DeviceKind::cpu;
  EXPECT_FALSE(same_card(lavapipe, host));
  EXPECT_FALSE(same_card(host, sister));
  EXPECT_TRUE(same_card(host, host));
  // Checks every pair of this machine's devices as well.
  for (Backend* const a : backends()) {
    for (Backend* const b : backends()) {
      for (const auto& one : a->probe().devices) {
        for (const auto& other : b->probe().devices) {
          if (!one.info.is_cpu() && !other.info.is_cpu()) continue;
          EXPECT_EQ(same_card(one.info, other.info), one.info.id() == other.info.id());
        }
      }
    }
  }
}

TEST(SpirvInfo, ReadsWhatAKernelNeeds) {
  KernelSource source = affine_source();
  source.text = glsl(R"(
layout(local_size_x = 8, local_size_y = 4, local_size_z = 2) in;
struct Pair { uint8_t small; float16_t half_word; vec3 three; };
layout(push_constant, scalar) uniform Arguments { Numbers to; uint16_t a; Pair pair; float last[3]; };
shared float tile[16][17];
shared f16vec4 vectors[10];
void main() {
  tile[to.at[0]][0] = last[2] + pair.three.x;
  vectors[to.at[1]] = f16vec4(pair.half_word);
  barrier();
  to.at[a] = uint(tile[to.at[2]][1]) + uint(vectors[to.at[3]].x);
}
)");
  const auto info = vulkan::inspect(vulkan::compile_glsl(source).value());
  EXPECT_EQ(info.local_size, (std::array<std::uint32_t, 3>{8, 4, 2}));
  EXPECT_EQ(info.shared_memory_bytes, 16U * 17 * 4 + 10 * 8);
  // 8 (address) + 2 (a), then at 12: 1 + 1 (padding) + 2 + 12 = 16, then 3 * 4.
  EXPECT_EQ(info.push_constant_bytes, 12U + 16 + 12);
}

TEST(GlslCompiler, SaysWhatItIs) {
  EXPECT_EQ(vulkan::glsl_compiler_version().find("glslang "), 0U);
  EXPECT_NE(vulkan::glsl_compiler_version().find("SPIRV-Tools v"), std::string::npos);
}

}  // namespace

}  // namespace greta::test::hardware_test
