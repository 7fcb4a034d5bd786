// Protects: what the search for a change says of one in a group is what it says of it alone, with
// few workgroups and with all; a change that does not compile spoils no other one, and one that
// accesses memory that is not there does not end the process.

#include "tuner/diagnose/changes/build_runs.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"
#include "tuner/compile/target_compiler.hpp"

namespace greta::test::build_runs_test {
namespace {

constexpr unsigned threads = 64, groups = 4, count = threads * groups;

struct Kernel {
  std::string device, text, entry;
};

const Kernel hip{"hip-host:0",
                 "extern \"C\" __global__ void twice(const float* x, float* y) {\n"
                 "  const unsigned i = blockIdx.x * 64 + threadIdx.x;\n"
                 "  y[i] = 2 * x[i] + 1;\n"
                 "}\n",
                 "twice"};
const Kernel glsl{"lavapipe",
                  "#version 460\n"
                  "#extension GL_EXT_buffer_reference : require\n"
                  "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
                  "layout(local_size_x = 64) in;\n"
                  "layout(buffer_reference, std430, buffer_reference_align = 4) buffer F32 {\n"
                  "  float v;\n"
                  "};\n"
                  "layout(push_constant, std430) uniform Arguments { uint64_t x, y; } args;\n"
                  "void main() {\n"
                  "  const uint i = gl_WorkGroupID.x * 64 + gl_LocalInvocationID.x;\n"
                  "  const float at = F32(args.x + 4 * i).v;\n"
                  "  F32(args.y + 4 * i).v = 2 * at + 1;\n"
                  "}\n",
                  "main"};

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// A kernel that adds 1 where 0 is right, with changes of its text.
class BuildRunsOf : public testing::TestWithParam<Kernel> {
 protected:
  void SetUp() override {
    const OpenOptions options;
    device_ = open_device(GetParam().device, options).value();
    compiler_ = create_probed_target(device_->info(), options).value();
    source_.name = "twice";
    source_.entry = GetParam().entry;
    source_.text = GetParam().text;
    source_.language = device_->info().language;
    source_.block = {threads, 1, 1};
    source_.argument_bytes = 2 * sizeof(std::uint64_t);
    make_case();
  }

  void make_case() {
    std::vector<float> x(count);
    std::vector<Expected> expected;
    for (unsigned i = 0; i < count; ++i) {
      x[i] = static_cast<float>(i);
      expected.push_back({2.0 * i, 0.25});
    }
    KernelCase& run = failed_.kernel;
    run.language = source_.language;
    run.architecture = device_->info().architecture;
    run.buffers = {{"x", x.size() * sizeof(float), 0, bytes_of(x), {}, "f32", {}, 0},
                   {"y", x.size() * sizeof(float), 0, {}, std::byte{0xFF}, "f32", expected, 0}};
    run.launches = {{0,
                     source_.entry,
                     {groups, 1, 1},
                     source_.block,
                     0,
                     0,
                     {CaseAddress{0, 0}, CaseAddress{1, 0}}}};
    built_.device = device_->info().id();
    built_.architecture = run.architecture;
    built_.unchanged = {compiler_->compile(source_).value().code_object};
    run.code_objects = built_.unchanged;
  }

  /// Returns a change that replaces words that are in the text once.
  SourceChange change(const std::string& before, const std::string& after) const {
    const std::size_t at = source_.text.rfind(before);
    return {at, before.size(), after, "", 0};
  }

  std::vector<std::byte> code_of(const std::string& text) const {
    KernelSource source = source_;
    source.text = text;
    return compiler_->compile(source).value().code_object;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<TargetCompiler> compiler_;
  KernelSource source_;
  FailedCase failed_;
  BuiltCase built_;
};

TEST_P(BuildRunsOf, AVersionDoesWhatItsChangeDoesAlone) {
  const std::vector<SourceChange> changes{change(" + 1;", " + 0;"), change(" + 1;", " + bad;"),
                                          change(" + 1;", " + 2;"), change(" = 2 *", " = 3 *"),
                                          change(" + 1;", ";")};
  const auto slotted = change_groups(changes, {1, 2, 3, 4, 5},
                                     slots_of(source_.text, source_.entry), changes.size());
  ASSERT_EQ(slotted.size(), 1U);
  const auto builds = build_changes(*compiler_, source_, slotted.front());
  ASSERT_EQ(builds.size(), 1U);
  EXPECT_EQ(builds[0].numbers, (std::vector<std::uint32_t>{1, 3, 4, 5}));
  built_.reduction = reduced_case(*device_, failed_.kernel, std::chrono::seconds(60));
  ASSERT_TRUE(built_.reduction.exists());
  EXPECT_EQ(built_.reduction.grids.front(), (Grid{1, 1, 1}));
  BuildRuns runs(failed_, built_, {{0, builds[0]}});
  ASSERT_TRUE(runs.fails_unchanged(std::chrono::seconds(60)));
  for (const std::uint32_t number : builds[0].numbers) {
    KernelCase alone = failed_.kernel;
    alone.code_objects = {code_of(changes[number - 1].applied_to(source_.text))};
    const auto expected = outcome_of_run(run_case(*device_, alone, std::chrono::seconds(60)));
    EXPECT_EQ(runs.outcome_of(number), expected) << number;
    const ChangeEffect effect = runs.last_effect();
    EXPECT_TRUE(effect.known);
    EXPECT_GE(effect.wrong, 0.98F) << number;  // 3 * 0 is 2 * 0
    EXPECT_EQ(effect.mended == 1.0F, expected == ChangeOutcome::correct_here) << number;
  }
}

TEST_P(BuildRunsOf, AllWorkgroupsConfirmWhatFewFind) {
  // Right in the first workgroup alone.
  const std::vector<SourceChange> changes{change(" + 1;", " + (i < 64 ? 0 : 1);")};
  const auto slotted = change_groups(changes, {1}, slots_of(source_.text, source_.entry), 1);
  const auto builds = build_changes(*compiler_, source_, slotted.at(0));
  built_.reduction = reduced_case(*device_, failed_.kernel, std::chrono::seconds(60));
  ASSERT_TRUE(built_.reduction.exists());
  KernelCase few = failed_.kernel;
  few.code_objects = {code_of(changes[0].applied_to(source_.text))};
  built_.reduction.apply(few);
  EXPECT_EQ(outcome_of_run(run_case(*device_, few, std::chrono::seconds(60))),
            ChangeOutcome::correct_here);
  BuildRuns runs(failed_, built_, {{0, builds.at(0)}});
  EXPECT_EQ(runs.outcome_of(1), ChangeOutcome::wrong);
}

TEST_P(BuildRunsOf, GoOnAfterAnAccessToWhatIsNotThere) {
  const std::string place = GetParam().device == "lavapipe" ? "2 * at" : "2 * x[i]";
  const std::string far = GetParam().device == "lavapipe" ? "2 * F32(args.x - 0x100000000000ul).v"
                                                          : "2 * x[i - 0x40000000000ul]";
  const std::vector<SourceChange> changes{change(place, far), change(" + 1;", ";")};
  const auto slotted = change_groups(changes, {1, 2}, slots_of(source_.text, source_.entry), 2);
  const auto builds = build_changes(*compiler_, source_, slotted.at(0));
  ASSERT_EQ(builds.at(0).numbers.size(), 2U);
  // A process of its own, which begins without threads.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        BuildRuns runs(failed_, built_, {{0, builds[0]}});
        const bool fails = runs.fails_unchanged(std::chrono::seconds(60));
        const bool goes_on = runs.outcome_of(1) == ChangeOutcome::wrong &&
                             runs.outcome_of(2) == ChangeOutcome::correct_here;
        _exit(fails && goes_on ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(OnCpu, BuildRunsOf, testing::Values(hip, glsl), [](const auto& one) {
  return one.param.device == "lavapipe" ? "vulkan" : "hip_host";
});

}  // namespace
}  // namespace greta::test::build_runs_test
