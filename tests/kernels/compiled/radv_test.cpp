// Protects: every GLSL kernel of the catalog compiles with Mesa's AMD driver for GPUs that this
// machine lacks.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <set>

#include "runtime/device/backend.hpp"
#include "tests/kernels/compiled/samples.hpp"
#include "tests/layers.hpp"

namespace greta::test::radv_test {
namespace {

class CompiledByRadv : public ::testing::TestWithParam<const char*> {
 protected:
  /// Opens the GPU with the name that this machine's Mesa uses.
  void SetUp() override {
    for (const std::string& name : null_hardware_names(GetParam())) {
      ::setenv("RADV_FORCE_FAMILY", name.c_str(), 1);
      auto device = open_null_hardware(name, {});
      ::unsetenv("RADV_FORCE_FAMILY");
      if (!device) continue;
      device_ = *std::move(device);
      return;
    }
    FAIL() << "Mesa's AMD driver is not installed, or does not know " << GetParam();
  }

  /// Compiles every kernel of a configuration that was not compiled before.
  void expect_good(const Operation& entry, const Problem& wanted, const Config& config,
                   bool is_default) {
    SCOPED_TRACE(wanted.key() + " | " + config.text());
    const auto plan = entry.plan(wanted, device_->info(), config);
    ASSERT_TRUE(plan) << plan.failure().message;
    for (const KernelSource& source : plan->sources) {
      if (!compiled_.insert(source.content_key({}, {})).second) continue;
      const auto kernel = device_->compile(source);
      ASSERT_TRUE(kernel) << kernel.failure().message << '\n' << kernel.failure().log;
      const KernelStatistics statistics = (*kernel)->statistics();
      EXPECT_LE(statistics.shared_memory_bytes, device_->info().shared_memory_bytes);
      EXPECT_GT(statistics.subgroups_per_simd, 0U);
      EXPECT_GT(statistics.code_bytes, 0U);
      if (!is_default) continue;
      EXPECT_EQ(statistics.spilled_registers, 0U);
      // Spilled scalars are in lanes of vector registers, one instruction each.
      EXPECT_LE(statistics.spilled_scalar_registers, 16U);
      EXPECT_EQ(statistics.scratch_bytes, 0U);
    }
  }

  void check_defaults(const test::Sizes& sizes) {
    test::for_each_default(
        device_->info(), sizes,
        [this](const Operation& entry, const Problem& wanted, const Config& config) {
          expect_good(entry, wanted, config, true);
        });
  }

  void sample(int each) {
    test::for_each_sample(
        device_->info(), each,
        [this](const Operation& entry, const Problem& wanted, const Config& config) {
          expect_good(entry, wanted, config, false);
        });
  }

 private:
  std::unique_ptr<Device> device_;
  std::set<std::string> compiled_;  ///< keys of the kernels
};

TEST_P(CompiledByRadv, DefaultsSpillNothing) {
  check_defaults({});
}

TEST_P(CompiledByRadv, SomeSamples) {
  sample(2);
}

/// For scripts/test.sh --all.
TEST_P(CompiledByRadv, MostSamples) {
  sample(5);
}

/// More of them take minutes: ctest -L long.
TEST_P(CompiledByRadv, ManyDefaultsSpillNothing) {
  check_defaults({.all = true});
}

TEST_P(CompiledByRadv, ManySamples) {
  sample(50);
}

INSTANTIATE_TEST_SUITE_P(Gpus, CompiledByRadv, ::testing::Values("gfx1103_r1", "gfx1100", "navi21"),
                         [](const auto& gpu) { return std::string(gpu.param); });

}  // namespace
}  // namespace greta::test::radv_test
