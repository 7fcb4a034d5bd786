// Protects: distances between shapes are of ratios, and only between likes.
#include "db/distance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kernels/catalog.hpp"
#include "tests/layers.hpp"

namespace greta::test::distance_test {
namespace {

Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {"gemm", DType::f32, DType::f32, {}, {{"m", m}, {"n", n}, {"k", k}}};
}

TEST(ShapeDistance, IsOnlyBetweenLikes) {
  EXPECT_EQ(shape_distance(gemm(8, 8, 8), gemm(8, 8, 8)), 0);
  EXPECT_GT(shape_distance(gemm(8, 8, 8), gemm(16, 4, 8)), 0);
  EXPECT_TRUE(std::isfinite(shape_distance(gemm(8, 8, 8), gemm(16, 4, 8))));
  auto half = gemm(8, 8, 8);
  half.dtype = DType::f16;
  EXPECT_TRUE(std::isinf(shape_distance(gemm(8, 8, 8), half)));
  auto turned = gemm(8, 8, 8);
  turned.attributes = {{"layout", "nt"}};
  EXPECT_TRUE(std::isinf(shape_distance(gemm(8, 8, 8), turned)));
  auto other = gemm(8, 8, 8);
  other.dims[0].first = "rows";
  EXPECT_TRUE(std::isinf(shape_distance(gemm(8, 8, 8), other)));
}

// Each is a distance on every operation: finite, not negative, and not by absolute differences.
TEST(ShapeDistance, EveryOneIsOfRatios) {
  std::set<std::string_view> names;
  for (const auto& distance : shape_distances()) {
    EXPECT_TRUE(names.insert(distance.name).second) << distance.name;
    EXPECT_FALSE(distance.summary.empty());
    const auto between = [&](std::int64_t m, std::int64_t recorded) {
      return distance.between(gemm(m, 4096, 4096), std::vector<std::int64_t>{recorded, 4096, 4096});
    };
    EXPECT_GT(between(64, 128), 0) << distance.name;
    EXPECT_GT(between(64, 16), 0) << distance.name;
    EXPECT_LT(between(64, 128), between(64, 512)) << distance.name;
    EXPECT_LT(between(64, 32), between(64, 8)) << distance.name;
    EXPECT_LT(between(2048, 2049), between(1, 2)) << distance.name;
  }
}

TEST(ShapeDistance, OfFlagsIsFinite) {
  for (const auto* kernel : catalog()) {
    const Problem problem = typical_problem(*kernel, kernel->dtypes.front());
    std::vector<std::int64_t> least;
    for (const auto& dimension : kernel->dimensions) least.push_back(dimension.least);
    for (const auto& distance : shape_distances()) {
      if (distance.name == "work") continue;  // the least extents together may be no problem
      const double between = distance.between(problem, least);
      EXPECT_TRUE(std::isfinite(between) && between >= 0) << kernel->name << distance.name;
    }
  }
}

}  // namespace
}  // namespace greta::test::distance_test
