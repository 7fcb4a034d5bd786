// Protects: on sm_90, what is answered without a measurement has the form that drawn problems
// showed to be fast (results/2026-12-01-nvidia-h200-long-single-queries): products of one row have
// few loads beyond k, few columns along a long k have a workgroup each, groups of rows have tiles
// that most of them fill alone, and rows of single elements have lanes for a few of them each. A
// second launch adds slices where few tiles have a long k, since it overlaps the first one
// (results/2026-12-01-nvidia-h200-overlap-in-plans).

#include <gtest/gtest.h>

#include "kernels/prior/predicted_config.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"

namespace greta::test::hopper_defaults_test {
namespace {

DeviceInfo hopper() {
  return architecture_info("sm_90").value();
}

Config default_of(const std::string& key) {
  const Problem problem = Problem::parse(key).value();
  return built_in(problem.op.c_str()).default_config(problem, hopper());
}

/// Returns what an H200 is given without a measurement.
Config answer_of(const std::string& key) {
  DeviceInfo card = hopper();
  card.compute_units = 132;
  const Problem problem = Problem::parse(key).value();
  return predicted_config(built_in(problem.op.c_str()), problem, card).value();
}

TEST(HopperDefaults, OneRowAcrossColumnsHasFewLoadsBeyondK) {
  for (const int k : {48, 160, 300, 1000, 4096}) {
    const Config c =
        default_of("gemm dtype=bf16 out=bf16 layout=nn m=1 n=896 k=" + std::to_string(k));
    ASSERT_EQ(c.variant, "gemv") << k;
    const int at_once = c["THREADS"] / c["COLS"] * c["UNROLL"];
    EXPECT_TRUE(at_once <= 2 * k || (c["UNROLL"] == 2 && c["THREADS"] <= 256)) << k << c.text();
    EXPECT_EQ(c["UNROLL"] % c["VA"], 0) << c.text();
  }
  EXPECT_EQ(default_of("gemm dtype=bf16 out=bf16 layout=nn m=1 n=896 k=8192")["UNROLL"], 8);
}

TEST(HopperDefaults, FewColumnsAlongALongKHaveAWorkgroupEach) {
  const Problem problem =
      Problem::parse("gemm dtype=bf16 out=bf16 layout=nt m=3 n=112 k=12008").value();
  const auto config = predicted_config(built_in("gemm"), problem, hopper());
  ASSERT_TRUE(config);
  EXPECT_EQ(config->variant, "gemv");
  EXPECT_EQ((*config)["COLS"] * (*config)["TN"], 1) << config->text();
  EXPECT_GE((*config)["UNROLL"], 4) << config->text();
}

TEST(HopperDefaults, ASecondLaunchAddsSlicesOfALongK) {
  const Config config = answer_of("gemm dtype=bf16 out=bf16 layout=nt m=256 n=512 k=16384");
  EXPECT_GE(config["SPLIT"], 8) << config.text();
  EXPECT_EQ(config["FOLD"], 0) << config.text();
}

TEST(HopperDefaults, TwoLinesOfTilesShareTilesOfB) {
  const auto answer = [](const std::string& rest) {
    return answer_of("gemm dtype=bf16 out=bf16 " + rest);
  };
  const Config pairs = answer("layout=nt m=128 n=5120 k=1536");
  EXPECT_EQ(pairs["BM"], 64) << pairs.text();
  EXPECT_EQ(pairs["CLUSTER_M"], 2) << pairs.text();
  // Of three lines, one would be alone. Halves of 80 columns are not of whole panels.
  const Config three = answer("layout=nt m=192 n=4608 k=1280");
  EXPECT_TRUE(three["CLUSTER_M"] == 1 || three["BM"] >= 96) << three.text();
  EXPECT_EQ(answer("layout=nt packing=panels m=128 n=5120 k=1536")["CLUSTER_M"], 1);
}

TEST(HopperDefaults, MostGroupsHaveOneTileOfRows) {
  const auto tile = [](const std::string& extents) {
    return default_of("grouped_gemm dtype=bf16 out=bf16 " + extents)["BM"];
  };
  // Of 140 rows in the mean, groups have up to 175: one tile of 184, but two of 128.
  EXPECT_GE(tile("groups=128 m=17920 n=768 k=5120"), 175);
  EXPECT_EQ(tile("groups=64 m=32768 n=2048 k=7168"), 128);  // of 512 rows
  EXPECT_GE(tile("groups=64 m=512 n=7168 k=2048"), 10);     // of eight rows, up to ten
}

TEST(HopperDefaults, ShortRowsOfSingleElementsHaveAWaveEach) {
  for (const char* op : {"rmsnorm", "softmax", "layernorm"}) {
    const Config c = default_of(std::string(op) + " dtype=f16 out=f16 rows=16864 cols=221");
    EXPECT_EQ(c["THREADS"] / c["ROWS"], 32) << c.text();
    EXPECT_GT(c["STAY"], 0) << c.text();
  }
  // Few rows would occupy few multiprocessors.
  EXPECT_EQ(default_of("rmsnorm dtype=f16 out=f16 rows=600 cols=221")["STAY"], 0);
}

TEST(HopperDefaults, FewRowsHave16BytesForEachThread) {
  for (const auto& [cols, threads] : {std::pair{1534, 256}, {1536, 256}, {6000, 1024}}) {
    const Config c = default_of("softmax dtype=f16 out=f16 rows=1 cols=" + std::to_string(cols));
    EXPECT_EQ(c["THREADS"], threads) << cols;
  }
}

}  // namespace
}  // namespace greta::test::hopper_defaults_test
