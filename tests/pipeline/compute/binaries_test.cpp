// Protects: a runtime loads kernels that a database carries instead of compiling them, and compiles
// those that the databases lack, or that the driver refuses, and says so.
#include <gtest/gtest.h>

#include <algorithm>

#include "db/tuned_db.hpp"
#include "runtime/device/binary_target.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "tests/catalog.hpp"
#include "tests/pipeline/compute/cases.hpp"
#include "tests/pipeline/compute/refusing_device.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::binaries_test {
namespace {

const Problem problem = Problem::parse("softmax dtype=f32 out=f32 rows=6 cols=500").value();

/// Collects warnings while it exists.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view line) {
      if (level == LogLevel::warning) lines.emplace_back(line);
    });
  }
  ~Warnings() { set_log_sink({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  std::vector<std::string> lines;
};

class CarriedKernels : public ::testing::TestWithParam<std::string> {
 protected:
  /// Returns the compiled kernels of the problem's default on the device.
  std::vector<CarriedBinary> compiled() const {
    const DeviceInfo info = open_device(GetParam(), {}).value()->info();
    const Operation& operation = built_in("softmax");
    const auto plan =
        operation.plan(problem, info, operation.default_config(problem, info)).value();
    const auto compiler = create_binary_compiler(info, {}).value();
    std::vector<CarriedBinary> binaries;
    for (const KernelSource& source : plan.sources) {
      const auto targets = binary_targets(info);
      const auto made = compiler->compile(source).value();
      for (const TargetBinary& one : made) {
        EXPECT_NE(std::find(targets.begin(), targets.end(), one.target), targets.end())
            << "the device takes what is compiled for it: " << one.target;
        binaries.push_back({source.content_key({}, {}), one.target, source.name, one.compiler,
                            one.binary, "2026-11-25T12:00:00Z"});
      }
    }
    return binaries;
  }
  /// Returns a runtime whose application's database carries these; `compiled` counts.
  std::unique_ptr<Runtime> runtime(const std::vector<CarriedBinary>& binaries) {
    Contents contents;
    contents.binaries = binaries;
    TunedDb::ship(contents, folder_ / "ship.db");
    LookupFiles files = LookupFiles::none();
    files.application = {folder_ / "ship.db"};
    const auto none = [](const KernelSource&) { return false; };
    return Runtime::of(std::make_unique<RefusingDevice>(open_device(GetParam(), {}).value(), none,
                                                        compiled_),
                       files)
        .value();
  }
  void expect_runs(Runtime& runtime) const {
    const auto loaded = load(runtime, problem, plain_shapes(problem), 1);
    const auto queue = runtime.queue().value();
    queue->run(problem, loaded.operands).value();
    queue->synchronize().value();
    expect_right(runtime, problem, loaded, 1);
  }

  TemporaryFolder folder_;
  int compiled_ = 0;
};

TEST_P(CarriedKernels, AreLoadedInsteadOfCompiledAndComputeTheSame) {
  const Warnings warnings;
  const auto shipped = runtime(compiled());
  expect_runs(*shipped);
  EXPECT_EQ(compiled_, 0);
  EXPECT_EQ(shipped->kernels().from_databases(), shipped->kernels().size());
  EXPECT_EQ(shipped->kernels().compiled(), 0U);
  EXPECT_TRUE(warnings.lines.empty()) << warnings.lines.front();
}

TEST_P(CarriedKernels, WhatADriverRefusesIsCompiled) {
  const Warnings warnings;
  auto binaries = compiled();
  for (CarriedBinary& one : binaries) one.binary.resize(one.binary.size() / 2);
  const auto shipped = runtime(binaries);
  expect_runs(*shipped);
  EXPECT_EQ(static_cast<std::size_t>(compiled_), binaries.size());
  EXPECT_EQ(shipped->kernels().from_databases(), 0U);
  ASSERT_EQ(warnings.lines.size(), binaries.size());
  EXPECT_NE(warnings.lines[0].find("its binary for " + binaries[0].target +
                                   " is not used, so that it is compiled: "),
            std::string::npos)
      << warnings.lines[0];
}

TEST_P(CarriedKernels, KernelsOfOtherTemplatesAndTargetsAreNotLoaded) {
  for (const bool other_target : {false, true}) {
    const Warnings warnings;
    compiled_ = 0;
    auto binaries = compiled();
    for (CarriedBinary& one : binaries) {
      if (other_target) one.target = "gfx1";
      if (!other_target) one.content = "0123456789abcdef";
    }
    const auto shipped = runtime(binaries);
    expect_runs(*shipped);
    EXPECT_EQ(static_cast<std::size_t>(compiled_), shipped->kernels().size());
    // Only a database with kernels for this device was meant to spare the compiler.
    ASSERT_EQ(warnings.lines.size(), other_target ? 0U : 1U);
    if (other_target) continue;
    EXPECT_NE(warnings.lines[0].find("but no usable one of this source"), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, CarriedKernels, ::testing::ValuesIn(compute_devices()),
                         [](const auto& one) { return device_name(one.param); });

}  // namespace
}  // namespace greta::test::binaries_test
