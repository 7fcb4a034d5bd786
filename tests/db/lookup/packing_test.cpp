// Protects: panels are chosen for products only where winners of both packings of all of them were
// measured on this device and the intervals of their times leave no doubt, or where the caller lets
// the static prior decide; products count by their weights; and what has no panels stays rows, with
// the reason.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "db/lookup/packing_choice.hpp"
#include "kernels/model/problem_rules.hpp"
#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::packing_test {
namespace {

class PackingOfProducts : public ::testing::Test {
 protected:
  static Problem product(std::int64_t m, const std::string& more = "") {
    const std::string key = fmt::format("quantized_gemm dtype=f16 out=f16 {}{}m={} n=4096 k=4096",
                                        more, more.empty() ? "" : " ", m);
    return catalog().read(key).value();
  }

  /// Stores a winner that takes this long, within 1 %.
  void measure(const Problem& problem, const DeviceInfo& device, double us) {
    StoredWinner result =
        test::winner(problem, device, built_in(problem.op).default_config(problem, device));
    result.winner.measurement.median_us = us;
    result.winner.measurement.low_us = 0.99 * us;
    result.winner.measurement.high_us = 1.01 * us;
    databases_.add(result);
  }
  void measure(std::int64_t m, double rows_us, double panels_us) {
    measure(product(m), here_, rows_us);
    measure(product(m, "packing=panels"), here_, panels_us);
  }

  Result<PackingChoice> choose(const std::vector<WeightedProduct>& products,
                               Unmeasured unmeasured = Unmeasured::rows) const {
    const auto lookup = databases_.open(here_);
    return choose_packing(
        catalog(), here_, products, [&](const Problem& problem) { return lookup.answer(problem); },
        unmeasured);
  }

  const DeviceInfo here_ = test::card("sm_90", "aa"), other_ = test::card("sm_90", "bb");
  test::Databases databases_;
};

constexpr auto rows = WeightPacking::rows, panels = WeightPacking::panels;

TEST_F(PackingOfProducts, StaysRowsUnlessAllAreMeasured) {
  EXPECT_EQ(choose({{product(1)}})->packing, rows);
  measure(1, 10, 8);
  const auto measured = choose({{product(1)}}).value();
  EXPECT_EQ(measured.packing, panels);
  EXPECT_TRUE(measured.measured);
  EXPECT_DOUBLE_EQ(measured.ratio.value(), 0.8);
  EXPECT_EQ(measured.reason, "panels: panels take 0.800 times as long, measured");
  const auto both = choose({{product(1)}, {product(512)}}).value();
  EXPECT_EQ(both.packing, rows);
  EXPECT_EQ(both.reason, "rows: 1 of 2 products are not measured in both packings");
  EXPECT_NE(packing_text(both.products[0]).find("0.800 (0.784 to 0.816) times as long, measured"),
            std::string::npos)
      << packing_text(both.products[0]);
  EXPECT_NE(packing_text(both.products[1]).find("predicted"), std::string::npos);
}

TEST_F(PackingOfProducts, ADifferenceWithinTheIntervalsIsNone) {
  measure(1, 10, 9.9);
  const auto close = choose({{product(1)}}).value();
  EXPECT_EQ(close.packing, rows);
  EXPECT_NE(close.reason.find("which may be chance"), std::string::npos) << close.reason;
  measure(2, 10, 9.6);  // at most 0.98
  EXPECT_EQ(choose({{product(2)}})->packing, rows);
  measure(16, 10, 11);
  EXPECT_EQ(choose({{product(16)}})->reason, "rows: panels take 1.100 times as long, measured");
}

TEST_F(PackingOfProducts, CountsProductsByTheirWeights) {
  measure(1, 10, 8);
  EXPECT_EQ(choose({{product(1), 1e308}, {product(1), 1e308}})->packing, panels);
  measure(512, 100, 110);
  EXPECT_EQ(choose({{product(1), 10}, {product(512), 1}})->packing, panels);
  EXPECT_EQ(choose({{product(1), 1}, {product(512), 10}})->packing, rows);
}

/// m = 300 has the bucket of 320, whose winner is as good as its own.
TEST_F(PackingOfProducts, AWinnerCountsForItsBucketAndItsDeviceAlone) {
  const Problem large = product(300);
  const Problem bucket = kernels::bucket(built_in("quantized_gemm"), large);
  EXPECT_NE(bucket, large);
  measure(bucket.dim("m"), 100, 80);
  EXPECT_EQ(choose({{large}})->packing, panels);
  measure(product(1), other_, 10);
  measure(product(1, "packing=panels"), other_, 5);
  EXPECT_EQ(choose({{product(1)}})->packing, rows);
  measure(product(1), here_, 10);
  EXPECT_EQ(choose({{product(1)}})->packing, rows);
}

/// The same kernels find bytes elsewhere: the configuration is likely, but its time is not known.
TEST_F(PackingOfProducts, PanelsHaveTheWinnersOfRowsUntilTheyHaveTheirOwn) {
  const char* const epilogue = "epilogue=residual";
  StoredWinner stored =
      test::winner(product(16, epilogue), here_,
                   Config{"matrix", {{"WAVES", 4}, {"TN", 1}, {"RT", 1}, {"UNROLL", 1}}});
  stored.winner.measurement.median_us = 1;
  stored.winner.measurement.low_us = stored.winner.measurement.high_us = 1;
  databases_.add(stored);
  const auto lookup = databases_.open(here_);
  const Answer answer = lookup.answer(product(16, "epilogue=residual packing=panels"));
  EXPECT_EQ(answer.origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(answer.config, stored.winner.config);
  const auto choice = choose({{product(16, epilogue)}}).value();
  EXPECT_EQ(choice.packing, rows);
  EXPECT_FALSE(choice.measured);
  EXPECT_FALSE(choice.products[0].panels_time);
}

/// B of gemm has panels, too, in layout nt alone.
TEST_F(PackingOfProducts, AreAlsoThoseOfGemm) {
  const auto gemm = [](const std::string& more) {
    return catalog().read("gemm dtype=bf16 out=bf16 " + more + "m=16 n=4096 k=4096").value();
  };
  EXPECT_EQ(choose({{gemm("layout=nt ")}})->packing, rows);
  measure(gemm("layout=nt "), here_, 10);
  measure(gemm("layout=nt packing=panels "), here_, 8);
  const auto choice = choose({{gemm("layout=nt ")}}).value();
  EXPECT_EQ(choice.packing, panels);
  EXPECT_DOUBLE_EQ(choice.ratio.value(), 0.8);
  const auto other = choose({{gemm("")}}).value();
  EXPECT_EQ(other.packing, rows);
  EXPECT_TRUE(other.products.empty());
  EXPECT_NE(other.reason.find("layout"), std::string::npos) << other.reason;
}

/// On request, what is not measured is predicted: both packings cost the static prior the same.
TEST_F(PackingOfProducts, PredictionsDecideOnRequest) {
  const auto same = choose({{product(512)}}, Unmeasured::predicted).value();
  EXPECT_EQ(same.packing, rows);
  EXPECT_DOUBLE_EQ(same.ratio.value(), 1);
  EXPECT_EQ(same.reason, "rows: panels take 1.000 times as long, predicted");
  measure(1, 10, 8);
  const auto mixed = choose({{product(1)}, {product(512)}}, Unmeasured::predicted).value();
  EXPECT_EQ(mixed.packing, panels);
  EXPECT_FALSE(mixed.measured);
}

TEST_F(PackingOfProducts, WhatHasNoPanelsStaysRows) {
  const auto odd =
      choose({{catalog().read("quantized_gemm dtype=f16 out=f16 m=1 n=24 k=256").value()}}).value();
  EXPECT_EQ(odd.packing, rows);
  EXPECT_NE(odd.reason.find("must be a multiple of 16"), std::string::npos) << odd.reason;
  const auto blocks = choose({{product(1, "weights=q4_k")}}).value();
  EXPECT_NE(blocks.reason.find("needs weights int4, int8 or mxfp4"), std::string::npos);
}

TEST_F(PackingOfProducts, RefusesWhatIsNoQuestion) {
  EXPECT_FALSE(choose({}));
  EXPECT_FALSE(choose({{product(1), 0}}));
  EXPECT_FALSE(choose({{product(1), std::numeric_limits<double>::infinity()}}));
  EXPECT_FALSE(choose({{product(1, "packing=panels")}}));
  EXPECT_FALSE(choose({{catalog().read("softmax dtype=f32 out=f32 rows=4 cols=4").value()}}));
}

}  // namespace
}  // namespace greta::test::packing_test
