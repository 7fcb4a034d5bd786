// Protects: what is answered without a measurement is a valid configuration that the static prior
// predicts to be no slower than every default and candidate, for operations where that is measured
// to be better, and nothing where a variant's default is.
#include "kernels/prior/predicted_config.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <string>

#include "kernels/catalog.hpp"
#include "kernels/prior/prior.hpp"
#include "kernels/sampling/candidates.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/layers.hpp"
#include "tests/layers.hpp"

namespace greta::test::predicted_config_test {
namespace {

/// The least predicted cost of the valid defaults and candidates, and whether a configuration is
/// one of them.
struct Defaults {
  double least = std::numeric_limits<double>::infinity();
  bool has = false;
};

Defaults defaults_of(const Operation& operation, const StaticPrior& prior, const Config& config) {
  const Instance& instance = prior.instance();
  Defaults found;
  for (const Variant& variant : operation.variants) {
    auto known = variant.defaults(instance.shape(), instance.device());
    if (variant.candidates) {
      std::ranges::copy(variant.candidates(instance.shape(), instance.device()),
                        std::back_inserter(known));
    }
    for (const Config& one : known) {
      if (instance.rejects(one)) continue;
      found.has = found.has || one == config;
      if (const auto cost = prior.cost(one)) found.least = std::min(found.least, *cost);
    }
  }
  return found;
}

TEST(PredictedConfig, IsValidAndNoSlowerThanAnyDefaultByThePrior) {
  int differ = 0, standing = 0;
  for (const char* name : {"sm_90", "gfx942", "gfx1100"}) {
    const DeviceInfo device = architecture_info(name).value();
    for (const Operation& operation : Catalog::built_in()) {
      const bool predicted = operation.untuned == Operation::Untuned::best_predicted;
      const std::size_t count = predicted ? 12 : 2;
      for (const Candidate& random : random_candidates(operation, device, "", count, 11)) {
        SCOPED_TRACE(random.problem.key() + " on " + name);
        const Instance instance(operation, random.problem, device);
        const auto config = predicted_config(operation, random.problem, device);
        const Config standard = operation.default_config(random.problem, device);
        const bool stands = operation.variant(standard.variant).default_stands;
        EXPECT_EQ(config.has_value(), predicted && !stands);
        standing += stands ? 1 : 0;
        if (!config) continue;
        EXPECT_EQ(instance.rejects(*config), std::nullopt) << config->text();
        const StaticPrior prior(operation, random.problem, device);
        EXPECT_LE(prior.cost(*config).value(), prior.cost(standard).value());
        const Defaults defaults = defaults_of(operation, prior, *config);
        EXPECT_TRUE(defaults.has || prior.cost(*config).value() < 0.9 * defaults.least);
        differ += *config == standard ? 0 : 1;
        EXPECT_EQ(predicted_config(operation, random.problem, device), config);
      }
    }
  }
  EXPECT_GT(differ, 10);
  EXPECT_GT(standing, 0);
}

// A misspelt value would be rejected without a word, and the variant lose what it predicts among.
TEST(PredictedConfig, CandidatesAreOfTheVariantsSpace) {
  DeviceInfo device = architecture_info("sm_90").value();
  device.compute_units = 132;
  const Catalog catalog = Catalog::built_in();
  std::map<std::string, int> valid;
  for (const char* problem : {"m=1 n=4096 k=4096", "weights=q8_0 m=4 n=4096 k=4096",
                              "m=12 n=4096 k=4096", "m=40 n=4096 k=4096"}) {
    const std::string key = fmt::format("quantized_gemm dtype=f16 out=f16 {}", problem);
    const Operation& operation = catalog.at("quantized_gemm");
    const Instance instance(operation, catalog.read(key).value(), device);
    for (const Variant& variant : operation.variants) {
      if (!variant.candidates) continue;
      const Alternative alternative = variant.space(instance.shape(), device);
      for (const Config& config : variant.candidates(instance.shape(), device)) {
        SCOPED_TRACE(key + ": " + config.text());
        ASSERT_EQ(config.variant, variant.name);
        ASSERT_EQ(config.values.size(), alternative.parameters.size());
        for (std::size_t i = 0; i < config.values.size(); ++i) {
          const Parameter& parameter = alternative.parameters[i];
          EXPECT_EQ(config.values[i].first, parameter.name);
          EXPECT_TRUE(std::ranges::count(parameter.values, config.values[i].second) == 1);
        }
        if (!instance.rejects(config)) ++valid[variant.name];
      }
    }
  }
  for (const char* name : {"tma", "matrix", "stream", "digits", "cluster", "gemv"}) {
    EXPECT_GT(valid[name], 10) << name;
  }
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
