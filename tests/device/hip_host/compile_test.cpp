// Protects: compiling on hip-host. Errors name lines of the kernel, and invalid sources are
// rejected.

#include "runtime/device/hip/hip_backend.hpp"
#include "runtime/device/hip/host/host_compiler.hpp"
#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::compile_test {
namespace {

Failure failure_of(const KernelSource& source, const OpenOptions& options = {}) {
  HostDevice host(sm_80, options);
  const auto kernel = host.device().compile(source);
  return kernel ? Failure{} : kernel.failure();
}

TEST(HipHostCompile, ErrorsNameTheKernelsLine) {
  const auto failure = failure_of(HostDevice::source(
      "extern \"C\" __global__ void test(float* out) {\n  out[0] = missing;\n}", {1, 1, 1}));
  EXPECT_EQ(failure.status, Status::compile);
  EXPECT_NE(failure.message.find("test.hip:2:12: error:"), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find("missing"), std::string::npos) << failure.message;
  EXPECT_NE(failure.log.find("missing"), std::string::npos);
}

TEST(HipHostCompile, LineDirectivesOfTheTextCount) {
  const auto failure = failure_of(HostDevice::source(
      "#line 71 \"gemm/tiled.hip\"\nextern \"C\" __global__ void test(float* out) { oops(); }",
      {1, 1, 1}));
  EXPECT_NE(failure.message.find("gemm/tiled.hip:71:"), std::string::npos) << failure.message;
}

TEST(HipHostCompile, AKernelThatIsNotInTheText) {
  auto source = HostDevice::source("extern \"C\" __global__ void other(float* out) {}", {1, 1, 1});
  const auto failure = failure_of(source);
  EXPECT_EQ(failure.status, Status::compile);
  EXPECT_NE(failure.message.find("test"), std::string::npos) << failure.message;
}

TEST(HipHostCompile, VariablesThatBlocksWouldShareAreRefused) {
  for (const char* variable :
       {"int counter;", "int counter = 5;", "static int counter;", "__device__ float counter[4];",
        "namespace inner { int counter; } using inner::counter;"}) {
    const auto failure = failure_of(HostDevice::source(
        std::string(variable) +
            "\nextern \"C\" __global__ void test(float* out) { out[0] += *(int*)&counter += 1; }",
        {1, 1, 1}));
    EXPECT_EQ(failure.status, Status::compile) << variable;
    EXPECT_NE(failure.message.find("neither const nor __shared__"), std::string::npos)
        << failure.message;
    EXPECT_NE(failure.message.find("counter"), std::string::npos) << failure.message;
  }
}

TEST(HipHostCompile, DynamicSharedMemoryIsNamedAndNothingElseChanges) {
  const auto compiled = [](const std::string& text) {
    KernelSource source = HostDevice::source(text, {1, 1, 1});
    const std::string whole = hip::host::compilation_text(source);
    const auto start = whole.find("#line 1 \"test.hip\"\n") + 19;
    return whole.substr(start, whole.rfind("\n#line 1 \"hip-host/entry\"") - start);
  };
  const std::string name = " __asm__(\"greta_host_dynamic\")";
  EXPECT_EQ(compiled("extern __shared__ float a[];"), "extern float a[]" + name + ";");
  EXPECT_EQ(compiled("x\nextern  __shared__\t__align__(16) T a[ ];y"),
            "x\nextern __align__(16) T a[ ]" + name + ";y");
  for (const std::string text :
       {"extern \"C\" void f();", "// extern __shared__ memory\nint a[];", "extern int a[];",
        "#define S(T, a) extern __shared__ T a[]\n", "extern", "external", "extern __shared__",
        "extern \"C\" {\nextern float b[];\n}"}) {
    EXPECT_EQ(compiled(text), text);
  }
}

TEST(HipHostCompile, ConstantsAndTablesAreAllowed) {
  HostDevice host(sm_80);
  const auto out = host.upload(std::vector<int>(4));
  host.run(HostDevice::source(R"(
__constant__ int table[4] = {3, 1, 4, 1};
static const int* const pointers[2] = {table, table + 1};
constexpr int more[2] = {5, 9};
extern "C" __global__ void test(int* out) {
  static const char letters[] = "abc";
  const int i = threadIdx.x;
  out[i] = pointers[i % 2][i / 2] + more[i % 2] + letters[i % 3];
})",
                              {4, 1, 1}),
           {1, 1, 1}, out)
      .value();
  EXPECT_EQ(host.download<int>(out),
            (std::vector<int>{3 + 5 + 'a', 1 + 9 + 'b', 1 + 5 + 'c', 4 + 9 + 'a'}));
}

TEST(HipHostCompile, AFunctionThatIsNowhereIsToldByName) {
  const auto failure = failure_of(
      HostDevice::source("extern \"C\" float nowhere(float);\n"
                         "extern \"C\" __global__ void test(float* out) { out[0] = nowhere(1); }",
                         {1, 1, 1}));
  EXPECT_EQ(failure.status, Status::compile);
  EXPECT_NE(failure.message.find("nowhere"), std::string::npos) << failure.message;
}

TEST(HipHostCompile, AKernelForAnotherDeviceIsRefused) {
  auto source =
      HostDevice::source("extern \"C\" __global__ void test(int* out) { *out = 1; }", {1, 1, 1});
  source.argument_bytes = 8;
  const auto compiler = hip::host::create_compiler({}).value();
  const auto code = compiler->compile(source, "host-gfx942").value();
  HostDevice right(gfx942), wrong(gfx1201);
  EXPECT_TRUE(right.device().load(source, code.binary));
  const auto refused = wrong.device().load(source, code.binary);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.failure().message.find("built for another device"), std::string::npos)
      << refused.failure().message;
  EXPECT_EQ(compiler->compile(source, "gfx942").failure().status, Status::unavailable);
}

TEST(HipHostCompile, DamagedLibrariesAreRefused) {
  const auto source = HostDevice::source("extern \"C\" __global__ void test() {}", {1, 1, 1});
  HostDevice host(sm_80);
  const std::vector<std::byte> zeros(4096);
  const auto refused = host.device().load(source, zeros);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().status, Status::compile);
  const auto compiler = hip::host::create_compiler({}).value();
  const auto library = compiler->compile(source, host.device().info().architecture).value().binary;
  const auto whole = host.device().load(source, library);
  EXPECT_TRUE(whole) << whole.failure().message;
  for (const std::size_t left : {std::size_t{1}, std::size_t{100}, library.size() - 1}) {
    const auto cut = host.device().load(source, std::span(library).first(left));
    ASSERT_FALSE(cut) << left;
    EXPECT_EQ(cut.failure().status, Status::compile);
  }
}

TEST(HipHostCompile, TheCompilerIsTheOnesThatWasAskedFor) {
  OpenOptions options;
  options.compiler = "/nowhere/c++";
  const auto missing = hip::host::create_compiler(options);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.failure().status, Status::unavailable);
  EXPECT_NE(missing.failure().message.find("/nowhere/c++"), std::string::npos);
  options.compiler = "g++";
  const auto there = hip::host::create_compiler(options).value();
  EXPECT_NE(there->version().find("g++"), std::string::npos) << there->version();
}

TEST(HipHostCompile, ACompilerThatIsTooSlowIsATimeout) {
  OpenOptions options;
  options.compile_deadline = std::chrono::seconds(60);
  const auto compiler = hip::host::create_compiler(options).value();
  // Keeps the preprocessor busy for longer than any test may take.
  std::string text = "#define A0 1\n";
  for (int i = 1; i <= 40; ++i) {
    const auto n = std::to_string(i), before = std::to_string(i - 1);
    text += "#define A" + n + " (A" + before + " + A" + before + ")\n";
  }
  text += "extern \"C\" __global__ void test(int* out) { *out = A40; }";
  options.compile_deadline = std::chrono::milliseconds(300);
  HostDevice host(sm_80);
  const auto hurried = hip::host::create_compiler(options);
  ASSERT_TRUE(hurried);
  const auto compiled = (*hurried)->compile(HostDevice::source(text, {1, 1, 1}), "host-sm_80");
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.failure().status, Status::timeout) << compiled.failure().message;
}

TEST(HipHostCompile, StatisticsAreOfTheKernel) {
  HostDevice host(sm_80);
  auto source = HostDevice::source(R"(
extern "C" __global__ void test(int* out) {
  __shared__ int tile[100];
  __shared__ char flag;
  tile[threadIdx.x] = out[0];
  if (threadIdx.x == 0) flag = out[1];
  __syncthreads();
  out[threadIdx.x] = tile[99 - threadIdx.x] + flag;
})",
                                   {100, 1, 1}, 48);
  source.argument_bytes = 8;
  const auto kernel = host.device().compile(source).value();
  EXPECT_EQ(kernel->statistics().shared_memory_bytes, 401U + 48U);
  EXPECT_GT(kernel->statistics().code_bytes, 0U);
}

TEST(HipHostCompile, DevicesSayWhatTheyAre) {
  const auto probe = hip::create_host_backend()->probe();
  ASSERT_TRUE(probe.available) << probe.reason;
  ASSERT_EQ(probe.devices.size(), 5U);
  const std::vector<std::string> names{"host-sm_80", "host-gfx942", "host-gfx1100", "host-gfx1201",
                                       "host-sm_90"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const DeviceInfo& info = probe.devices[i].info;
    EXPECT_TRUE(probe.devices[i].usable);
    EXPECT_EQ(info.id(), "hip-host:" + std::to_string(i));
    EXPECT_EQ(info.architecture, names[i]);
    EXPECT_EQ(info.language, Language::hip);
    EXPECT_TRUE(info.is_cpu());
    EXPECT_EQ(info.subgroup_size, i == 1 ? 64U : 32U);
    EXPECT_GE(info.shared_memory_bytes, 64U << 10);
    EXPECT_FALSE(info.matrix_operations.empty());
    EXPECT_EQ(info.card.uuid.size(), 32U);
    EXPECT_FALSE(info.compiler.empty());
  }
  EXPECT_NE(probe.devices[0].info.fingerprint(), probe.devices[1].info.fingerprint());
}

}  // namespace
}  // namespace greta::test::compile_test
