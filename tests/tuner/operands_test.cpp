// Protects: writes outside an output and missing writes to it are detected. Runs on the device
// "auto".

#include "kernels/launch/operands.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "kernels/launch/prepared_plan.hpp"
#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"
#include "tests/tuner/tiny_kernel.hpp"

namespace greta::test::operands_test {
namespace {

class OperandsTest : public ::testing::Test {
 protected:
  // Runs a kernel body and returns the report of its guard zones.
  std::optional<std::string> broken_by(const std::string& body) {
    Operands operands = Operands::create(*device_, {spec_}).value();
    const auto candidate =
        PreparedPlan::create(*device_, test::tiny_plan(device_->info(), body, spec_.elements()),
                             operands,
                             [&](const KernelSource& source) { return device_->compile(source); })
            .value();
    auto stream = device_->create_stream().value();
    operands.poison_outputs(*stream).value();
    candidate.record(*stream).value();
    stream->synchronize(std::chrono::seconds(20)).value();
    operands.download_outputs(*device_, outputs_).value();
    return operands.broken_guard(*device_).value();
  }

  std::unique_ptr<Device> device_ = open_device("auto", {}).value();
  TensorSpec spec_{"C", Role::output, DType::f32, 5, 7};
  std::vector<HostTensor> outputs_;
};

TEST_F(OperandsTest, AnHonestKernelBreaksNoGuard) {
  EXPECT_EQ(broken_by("for (uint i = 0; i < count; ++i) C(i) = float(i);"), std::nullopt);
  EXPECT_DOUBLE_EQ(outputs_.front().at(34), 34);
}

TEST_F(OperandsTest, UnwrittenElementsAreNaN) {
  EXPECT_EQ(broken_by("for (uint i = 0; i + 1 < count; ++i) C(i) = 1.0;"), std::nullopt);
  EXPECT_TRUE(std::isnan(outputs_.front().at(34)));
}

TEST_F(OperandsTest, OneElementPastTheEndIsSeen) {
  const auto broken = broken_by("C(count) = 1.0;");
  ASSERT_TRUE(broken);
  EXPECT_NE(broken->find("past the end of tensor C"), std::string::npos) << *broken;
}

TEST_F(OperandsTest, OneElementBeforeTheStartIsSeen) {
  const auto broken = broken_by("C(int(count) - 36) = 1.0;");
  ASSERT_TRUE(broken);
  EXPECT_NE(broken->find("before tensor C"), std::string::npos) << *broken;
}

}  // namespace
}  // namespace greta::test::operands_test
