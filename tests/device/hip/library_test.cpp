// Protects: libraries that are missing or incomplete, and both ways in which they describe devices.

#include "tests/device/hip/fake_library.hpp"
#include "tests/layers.hpp"

namespace greta::test::library_test {

namespace {

std::string reason_of(Fake fake) {
  const auto backend = backend_of(fake);
  const Probe probe = backend->probe();
  EXPECT_FALSE(probe.available);
  EXPECT_TRUE(probe.devices.empty());
  EXPECT_EQ(backend->open(0, {}).failure().status, Status::unavailable);
  return probe.reason;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

ProbedDevice describe(Fake fake) {
  const auto probe = backend_of(fake)->probe();
  EXPECT_TRUE(probe.available) << probe.reason;
  return probe.devices.at(0);
}

TEST(HipLibrary, ThatIsNotThereIsAReason) {
  const auto backend =
      hip::create_backend({{"libgreta-a.so.7", "libgreta-a.so"}, {"libgreta-n.so"}});
  const Probe probe = backend->probe();
  EXPECT_FALSE(probe.available);
  for (const std::string part : {"libgreta-a.so.7", "libgreta-a.so:", "libgreta-n.so"}) {
    EXPECT_TRUE(has(probe.reason, part)) << probe.reason;
  }
  EXPECT_EQ(probe.reason.find('\n'), std::string::npos);
}

TEST(HipLibrary, AMissingFunctionIsNamed) {
  open_fake(Fake::incomplete);
  const auto reason = reason_of(Fake::incomplete);
  EXPECT_TRUE(
      has(reason, path_of(Fake::incomplete) + " has no function hipGraphInstantiateWithFlags"))
      << reason;
}

TEST(HipLibrary, AnUnknownVersionIsRefused) {
  for (const auto& [number, text] :
       std::map<int, std::string>{{90'000'123, "HIP 9.0.123"}, {40'421'131, "HIP 4.4.21131"}}) {
    open_fake(Fake::hip6).version = number;
    const auto reason = reason_of(Fake::hip6);
    EXPECT_TRUE(has(reason, text)) << reason;
    EXPECT_TRUE(has(reason, "5 to 7")) << reason;
  }
  EXPECT_EQ(open_fake(Fake::hip6).calls["hipGetDeviceCount"], 0);
}

TEST(HipLibrary, AVersionThatIsNotToldIsAReason) {
  open_fake(Fake::hip6).fails["hipRuntimeGetVersion"] = 700;
  EXPECT_TRUE(has(reason_of(Fake::hip6), "hipRuntimeGetVersion: hipErrorIllegalAddress"));
}

TEST(HipLibrary, WithoutADeviceIsAReason) {
  open_fake(Fake::hip6).init_error = 700;
  EXPECT_TRUE(has(reason_of(Fake::hip6), "hipErrorIllegalAddress (an illegal memory access"));
  open_fake(Fake::hip6).devices = 0;
  EXPECT_TRUE(has(reason_of(Fake::hip6), "(HIP 6.2.41133) finds no device"));
  open_fake(Fake::hip6).fails["hipGetDeviceCount"] = 2;
  EXPECT_TRUE(has(reason_of(Fake::hip6), "hipErrorOutOfMemory"));
  open_fake(Fake::cuda).devices = 0;
  EXPECT_TRUE(has(reason_of(Fake::cuda), "finds no device"));
}

TEST(HipLibrary, DescribesAnAmdDevice) {
  open_fake(Fake::hip6);
  const auto [info, usable, reason] = [] {
    const auto probed = describe(Fake::hip6);
    return std::tuple(probed.info, probed.usable, probed.reason);
  }();
  EXPECT_TRUE(usable) << reason;
  EXPECT_EQ(info.id(), "hip:0");
  EXPECT_EQ(info.language, Language::hip);
  EXPECT_EQ(info.name, "Fake Instinct");
  EXPECT_EQ(info.vendor, "AMD");
  EXPECT_EQ(info.architecture, "gfx90a") << "without the features after it";
  EXPECT_TRUE(has(info.driver, "HIP 6.2.41133")) << info.driver;
  EXPECT_FALSE(info.compiler.empty());
  EXPECT_EQ(info.kind, DeviceKind::discrete_gpu);
  EXPECT_EQ(info.card.uuid, "30313233343536373839616263646566") << "the serial number's characters";
  EXPECT_EQ(info.card.pci_address, "0000:c1:00.0");
  EXPECT_EQ(info.max_workgroup_invocations, 1024U);
  EXPECT_EQ(info.max_workgroup_size, (std::array<std::uint32_t, 3>{1024, 1024, 1024}));
  EXPECT_EQ(info.max_grid, (std::array<std::uint32_t, 3>{2147483647, 65536, 65536}));
  EXPECT_EQ(info.shared_memory_bytes, 65536U);
  EXPECT_EQ(info.subgroup_size, 64U);
  EXPECT_EQ(info.min_subgroup_size, 64U);
  EXPECT_EQ(info.max_subgroup_size, 64U);
  EXPECT_EQ(info.compute_units, 104U);
  EXPECT_EQ(info.unit_registers, 131072U);
  EXPECT_EQ(info.unit_threads, 2048U);
  EXPECT_EQ(info.unit_shared_memory_bytes, 65536U);
  EXPECT_EQ(info.memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(info.timestamp_period_ns, 10);
  EXPECT_TRUE(info.f16_arithmetic && info.f16_storage);
  EXPECT_FALSE(info.matrix_operations.empty());
  EXPECT_FALSE(info.unified_memory);
}

TEST(HipLibrary, DescribesTheSameDeviceThroughHip5) {
  open_fake(Fake::hip6);
  DeviceInfo newer = describe(Fake::hip6).info;
  open_fake(Fake::hip5);
  const DeviceInfo older = describe(Fake::hip5).info;
  EXPECT_EQ(older.architecture, newer.architecture);
  EXPECT_EQ(older.max_grid, newer.max_grid);
  EXPECT_EQ(older.timestamp_period_ns, 10) << "which HIP 5.2 does not say";
  // HIP 5 reports no serial number: the UUID is the one that Mesa's driver makes from the PCI
  // address.
  EXPECT_EQ(older.card.uuid, "00000000c10000000000000000000000");
  EXPECT_TRUE(same_card(older, newer));
}

TEST(HipLibrary, ACardWithoutSerialNumberHasTheUuidOfItsPlace) {
  auto& fake = open_fake(Fake::hip6);
  fake.serial = "XX";
  fake.pci = "0001:03:02.1";
  EXPECT_EQ(describe(Fake::hip6).info.card.uuid, "01000000030000000200000001000000");
}

TEST(HipLibrary, CountsComputeUnitsNotWorkgroupProcessors) {
  auto& fake = open_fake(Fake::hip6);
  fake.architecture = "gfx1100";
  fake.attributes[87] = 32;
  fake.attributes[63] = 48;
  EXPECT_EQ(describe(Fake::hip6).info.compute_units, 96U);
}

TEST(HipLibrary, AnArchitectureThatIsNotToldIsFoundByName) {
  auto& fake = open_fake(Fake::hip6);
  fake.architecture = "nonsense";
  fake.name = "AMD Instinct MI300X";
  EXPECT_EQ(describe(Fake::hip6).info.architecture, "gfx942");
  fake.fails["hipGetDeviceProperties"] = 1;
  fake.name = "Strange Thing";
  const auto probed = describe(Fake::hip6);
  EXPECT_FALSE(probed.usable);
  EXPECT_TRUE(has(probed.reason, "architecture")) << probed.reason;
  EXPECT_TRUE(has(backend_of(Fake::hip6)->open(0, {}).failure().message, "architecture"));
}

TEST(HipLibrary, ADeviceThatDoesNotAnswerIsListedWithTheReason) {
  auto& fake = open_fake(Fake::hip6);
  fake.attributes.erase(74);
  auto probed = describe(Fake::hip6);
  EXPECT_FALSE(probed.usable);
  EXPECT_TRUE(has(probed.reason, "hipDeviceGetAttribute")) << probed.reason;
  fake.fails["hipDeviceGetName"] = 700;
  probed = describe(Fake::hip6);
  EXPECT_TRUE(has(probed.reason, "hipDeviceGetName: hipErrorIllegalAddress")) << probed.reason;
}

TEST(HipLibrary, DescribesAnNvidiaDevice) {
  open_fake(Fake::cuda);
  const DeviceInfo info = describe(Fake::cuda).info;
  EXPECT_EQ(info.vendor, "NVIDIA");
  EXPECT_EQ(info.architecture, "sm_90");
  EXPECT_TRUE(has(info.driver, "CUDA 13.0")) << info.driver;
  EXPECT_EQ(info.card.uuid, "30313233343536373839616263646566");
  EXPECT_EQ(info.card.pci_address, "0000:c1:00.0");
  EXPECT_EQ(info.shared_memory_bytes, 232448U) << "what a kernel may have at most, not at once";
  EXPECT_EQ(info.unit_shared_memory_bytes, 233472U);
  EXPECT_EQ(info.subgroup_size, 32U);
  EXPECT_EQ(info.compute_units, 132U);
  EXPECT_EQ(info.max_workgroup_size[2], 64U);
  EXPECT_EQ(info.matrix_operations,
            (std::vector<MatrixOperation>{{DType::f16, DType::f32, 16, 8, 16},
                                          {DType::bf16, DType::f32, 16, 8, 16},
                                          {DType::f16, DType::f32, 64, 256, 16},
                                          {DType::bf16, DType::f32, 64, 256, 16}}));
}

// The fake NVRTC precedes any that this machine has.
TEST(HipLibrary, ADeviceWithoutACompilerIsListedWithTheReason) {
  open_fake(Fake::cuda);
  setenv("LD_LIBRARY_PATH", FAKE_NVRTC_FOLDER, 1);
  auto probed = describe(Fake::cuda);
  EXPECT_TRUE(probed.usable) << probed.reason;
  setenv("LD_LIBRARY_PATH", FAKE_PARTIAL_NVRTC_FOLDER, 1);
  probed = describe(Fake::cuda);
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_FALSE(probed.usable);
  EXPECT_TRUE(has(probed.reason, "libnvrtc.so.13 has no function nvrtcGetProgramLog"))
      << probed.reason;
}

TEST(HipLibrary, BothMakersDevicesAreListed) {
  open_fake(Fake::hip5);
  open_fake(Fake::cuda).devices = 1;
  const auto probe = hip::create_backend({{path_of(Fake::hip5)}, {path_of(Fake::cuda)}})->probe();
  ASSERT_EQ(probe.devices.size(), 3U);
  EXPECT_EQ(probe.devices[1].info.vendor, "AMD");
  EXPECT_EQ(probe.devices[2].info.vendor, "NVIDIA");
  EXPECT_EQ(probe.devices[2].info.id(), "hip:2");
}

TEST(HipLibrary, AnArchitectureThatNoCompilerKnowsIsAFailureToCompile) {
  open_fake(Fake::hip6).architecture = "gfx9999";
  const auto backend = backend_of(Fake::hip6);
  const auto device = backend->open(0, {}).value();
  KernelSource source = work_source();
  source.text = "extern \"C\" __attribute__((global)) void work() {}";
  const auto kernel = device->compile(source);
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.failure().status, Status::unavailable);
  EXPECT_TRUE(has(kernel.failure().message, "gfx9999")) << kernel.failure().message;
  EXPECT_EQ(device->load(work_source(), code_object_of(Fake::hip6)).failure().status,
            Status::compile)
      << "a code object for another architecture";
  EXPECT_TRUE(device->allocate(64)) << "the device goes on";
}

TEST(HipLibrary, KernelsOfAmdDevicesAreCompiledInspectedAndListed) {
  auto& fake = open_fake(Fake::hip6);
  const auto device = backend_of(Fake::hip6)->open(0, {}).value();
  KernelSource source = work_source();
  source.argument_bytes = 8;
  source.text =
      "extern \"C\" __attribute__((global)) void work(float* to) {\n"
      "  static __attribute__((shared)) float tile[100];\n"
      "  tile[__builtin_amdgcn_workitem_id_x()] = to[0];\n"
      "  __builtin_amdgcn_s_barrier();\n"
      "  to[1] = tile[1];\n"
      "}\n";
  const auto kernel = device->compile(source).value();
  const KernelStatistics statistics = kernel->statistics();
  EXPECT_GT(statistics.registers, 0U);
  EXPECT_GT(statistics.scalar_registers, 0U);
  EXPECT_EQ(statistics.shared_memory_bytes, 400U);
  EXPECT_EQ(statistics.scratch_bytes, 0U);
  EXPECT_FALSE(statistics.spills());
  EXPECT_TRUE(has(kernel->listing().value(), "s_barrier"));
  fake.max_threads_per_block = 32;
  EXPECT_EQ(device->compile(source).failure().status, Status::compile);
}

TEST(HipLibrary, ADeviceOpensWithoutItsCompiler) {
  open_fake(Fake::hip6);
  const auto backend = backend_of(Fake::hip6);
  OpenOptions options;
  options.compiler = "/nonexistent/clang++";
  const auto device = backend->open(0, options).value();
  KernelSource source = work_source();
  source.text = "extern \"C\" __attribute__((global)) void work() {}";
  EXPECT_EQ(device->compile(source).failure().status, Status::unavailable);
  EXPECT_TRUE(device->load(work_source(), code_object_of(Fake::hip6)));
}

}  // namespace

}  // namespace greta::test::library_test
