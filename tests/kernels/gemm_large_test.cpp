// Protects: what of gemm's spaces and defaults depends on sizes that no test runs.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/hopper_runner.hpp"

namespace greta::test::gemm_large_test {
namespace {

// reduce.hip counts the sums of a slice in 32 bits, however much memory there is.
TEST(GemmLarge, SlicesHaveNoMoreSumsThanTheirAdditionCounts) {
  DeviceInfo large = hopper_of(2);
  large.memory_bytes = large.max_allocation_bytes = std::uint64_t{1} << 40;
  const auto offers_two_slices = [&](std::int64_t n) {
    const Problem problem = gemm_problem(65536, n, 256, DType::f32, DType::f32);
    const Space space = built_in("gemm").space(problem, large);
    const auto parsed = space.parse(
        "split_k BM=128 BN=128 TM=8 TN=8 LX=8 BK=16 STAGES=1 PAD=0 VA=1 VB=1 UNROLL=1 SWIZZLE=1 "
        "ORDER=0 TRANSPOSE=0 SPLIT=2 FOLD=0");
    if (!parsed) {
      EXPECT_NE(parsed.failure().message.find("workspace"), std::string::npos)
          << parsed.failure().message;
    }
    return static_cast<bool>(parsed);
  };
  EXPECT_TRUE(offers_two_slices(65533));
  EXPECT_FALSE(offers_two_slices(65537));
}

// Lines of k at odd addresses are read by fours once they are transposed to padded ones.
TEST(GemmLarge, DefaultsReadTransposedLinesByFours) {
  const Operation& gemm = built_in("gemm");
  const Problem problem =
      gemm_problem(4095, 4093, 2047, DType::f32, DType::f32, {{"layout", "nt"}});
  const Config first = gemm.default_config(problem, hopper_of(2));
  EXPECT_EQ(first["TRANSPOSE"], 1) << first.text();
  EXPECT_EQ(first["VA"], 4) << first.text();
  EXPECT_EQ(first["VB"], 4) << first.text();
}

}  // namespace
}  // namespace greta::test::gemm_large_test
