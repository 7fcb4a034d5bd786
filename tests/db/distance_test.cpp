// Protects: distances between shapes depend on ratios, and exist only between comparable problems.
#include "db/distance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/catalog.hpp"

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

TEST(ShapeDistance, IsOfRatios) {
  const auto between = [](std::int64_t m, std::int64_t recorded) {
    return shape_distance(gemm(m, 4096, 4096), gemm(recorded, 4096, 4096));
  };
  EXPECT_DOUBLE_EQ(between(64, 128), between(64, 32));
  EXPECT_LT(between(64, 128), between(64, 512));
  EXPECT_LT(between(64, 32), between(64, 8));
  EXPECT_LT(between(2048, 2049), between(1, 2));
  EXPECT_NEAR(between(1, 2), 0.6931, 1e-4);
}

}  // namespace
}  // namespace greta::test::distance_test
