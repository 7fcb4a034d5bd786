// Protects: kernels are compiled ahead concurrently, and what is compiled first is known.

#include "tuner/evaluate/compile_ahead.hpp"

#include <gtest/gtest.h>

#include <latch>

#include "runtime/device/backend.hpp"
#include "tests/forwarding_device.hpp"

namespace greta::test::compile_ahead_test {
namespace {

/// Compiles no kernel of the name "slow" before it is told to.
class SlowDevice : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<std::unique_ptr<Kernel>> compile(const KernelSource& source) override {
    if (source.name == "slow") released_.wait();
    if (source.name == "huge") throw std::bad_alloc();
    return Failure{Status::compile, source.name, {}};
  }
  std::latch released_{1};
};

KernelSource named(const std::string& name) {
  KernelSource source;
  source.name = source.text = name;
  return source;
}

TEST(CompileAhead, KnowsWhichCandidateIsCompiledFirst) {
  SlowDevice device(open_device("vulkan:0", {}).value());
  const CompileSlots no_limit("", 0);
  CompileAhead compiler(device, no_limit);
  const auto slow = compiler.start(named("slow"));
  const auto fast = compiler.start(named("fast")), other = compiler.start(named("other"));
  EXPECT_EQ(compiler.first_compiled({{slow}, {fast, slow}, {fast, other}}), 2U);
  EXPECT_EQ(compiler.take(named("fast")).failure().message, "fast");
  EXPECT_EQ(compiler.first_compiled({{slow}, {"never started"}}), 1U);
  device.released_.count_down();
  EXPECT_EQ(compiler.first_compiled({{slow}}), 0U);
  EXPECT_EQ(compiler.first_compiled({{slow}, {other}}), 0U);
  EXPECT_EQ(compiler.take(named("slow")).failure().message, "slow");
}

TEST(CompileAhead, HandsOnWhatACompilationThrows) {
  SlowDevice device(open_device("vulkan:0", {}).value());
  const CompileSlots no_limit("", 0);
  CompileAhead compiler(device, no_limit);
  for (int round = 0; round < 2; ++round) {  // it can be started again
    const auto huge = compiler.start(named("huge"));
    EXPECT_EQ(compiler.first_compiled({{huge}}), 0U);
    EXPECT_THROW(static_cast<void>(compiler.take(named("huge"))), std::bad_alloc);
  }
}

}  // namespace
}  // namespace greta::test::compile_ahead_test
