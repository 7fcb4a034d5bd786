// Protects: what is answered without a measurement is a valid configuration that the static prior
// predicts to be no slower than every default, for operations where that is measured to be better.
#include "kernels/prior/predicted_config.hpp"

#include <gtest/gtest.h>

#include "kernels/catalog.hpp"
#include "kernels/prior/prior.hpp"
#include "kernels/sampling/candidates.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/layers.hpp"
#include "tests/layers.hpp"

namespace greta::test::predicted_config_test {
namespace {

TEST(PredictedConfig, IsValidAndNoSlowerThanAnyDefaultByThePrior) {
  int differ = 0;
  for (const char* name : {"sm_90", "gfx942", "gfx1100"}) {
    const DeviceInfo device = architecture_info(name).value();
    for (const Operation& operation : Catalog::built_in()) {
      const bool predicted = operation.untuned == Operation::Untuned::best_predicted;
      const std::size_t count = predicted ? 12 : 2;
      for (const Candidate& random : random_candidates(operation, device, "", count, 11)) {
        SCOPED_TRACE(random.problem.key() + " on " + name);
        const Instance instance(operation, random.problem, device);
        const auto config = predicted_config(operation, random.problem, device);
        EXPECT_EQ(config.has_value(), predicted);
        if (!config) continue;
        EXPECT_EQ(instance.rejects(*config), std::nullopt) << config->text();
        const StaticPrior prior(operation, random.problem, device);
        const Config standard = operation.default_config(random.problem, device);
        EXPECT_LE(prior.cost(*config).value(), prior.cost(standard).value());
        differ += *config == standard ? 0 : 1;
        EXPECT_EQ(predicted_config(operation, random.problem, device), config);
      }
    }
  }
  EXPECT_GT(differ, 10);
}

// A and B are read together, so that loads are as narrow as the less aligned one.
TEST(PredictedConfig, ExistsForRowsAtOddDistances) {
  Problem problem{"gemm", DType::f32, DType::f32, {}, {}};
  problem.attributes = {{"layout", "nt"}, {"prologue", "rmsnorm"}, {"a_batch_stride", "91"}};
  problem.dims = {{"m", 5}, {"n", 32}, {"k", 18}, {"batch", 3}};
  const Catalog catalog = Catalog::built_in();
  const DeviceInfo device = architecture_info("gfx942").value();
  EXPECT_TRUE(predicted_config(catalog.at("gemm"), problem, device));
}

TEST(PredictedConfig, IsNoneForCpus) {
  DeviceInfo device = architecture_info("gfx942").value();
  device.kind = DeviceKind::cpu;
  const Catalog catalog = Catalog::built_in();
  const Operation& gemm = catalog.at("gemm");
  const auto problem = random_candidates(gemm, device, "", 1, 1).at(0).problem;
  EXPECT_FALSE(predicted_config(gemm, problem, device));
}

}  // namespace
}  // namespace greta::test::predicted_config_test
