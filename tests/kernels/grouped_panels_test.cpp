// Protects: groups of rows and experts whose weights lie in panels of 16 rows have the results of
// rows, bit for bit, in every variant that reads them, on each device; what has no panels; and that
// they have the variants of rows.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/model/problem_rules.hpp"
#include "tests/kernels/hopper_runner.hpp"
#include "tests/kernels/panel_cases.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta::test::grouped_panels_test {
namespace {

constexpr auto plain = kernels::InputStyle::plain;
constexpr auto adversarial = kernels::InputStyle::adversarial;

/// Groups without rows, gates, masked groups, and each format.
const char* const products[] = {
    "quantized_grouped_gemm dtype=f16 out=f16 groups=5 m=40 n=48 k=256",
    "quantized_grouped_gemm dtype=bf16 out=f32 form=masked weights=int8 group=\"64\" zeros=groups "
    "epilogue=swiglu groups=3 m=20 n=32 k=192",
    "quantized_grouped_gemm dtype=bf16 out=bf16 weights=mxfp4 routing=skewed groups=4 m=70 n=16 "
    "k=96",
    "quantized_grouped_gemm dtype=f16 out=f32 group=\"32\" zeros=groups epilogue=geglu groups=2 "
    "m=33 "
    "n=80 k=160",
    "quantized_grouped_gemm dtype=f32 out=f32 weights=int8 form=masked groups=3 m=9 n=32 k=128",
    "experts dtype=f16 out=f16 weights=int4 tokens=3 experts=5 top_k=2 dim=256 hidden=128",
    "experts dtype=bf16 out=f32 weights=int8 group=\"64\" zeros=groups tokens=2 experts=3 top_k=2 "
    "dim=64 hidden=192",
    "experts dtype=f32 out=f32 weights=mxfp4 tokens=5 experts=4 top_k=3 dim=96 hidden=64"};

TEST(GroupedPanels, EqualRowsOnEachDevice) {
  std::uint64_t seed = 1;
  for (const std::string& id : usable_devices()) {
    Device& on = device(id);
    if (!on.info().is_cpu()) continue;
    for (const char* key : products) {
      const Problem rows = catalog().read(key).value();
      const Operation& operation = built_in(rows.op.c_str());
      for (const Config& config : one_of_each(operation, in_panels(rows), on.info(), seed)) {
        const auto style = seed % 2 == 0 ? plain : adversarial;
        expect_equal_of_panels(operation, rows, on.info(), config, on, style, seed);
        ++seed;
      }
    }
  }
}

/// Boxes of lines of one group, with gates and without, and tiles past a group's last line, where
/// the next group's panels begin.
TEST(GroupedPanels, EqualRowsOfTensorCopies) {
  const DeviceInfo hopper = hopper_of(2);
  for (const auto& [key, text] :
       {std::pair{"dtype=f16 out=f16 groups=3 m=70 n=80 k=384",
                  "tma BM=32 BN=128 GROUPS=2 STAGES=2 SPLIT=1 RESIDENT=0 ROUND=0 SHARES=1"},
        {"dtype=bf16 out=f32 form=masked weights=int8 group=\"64\" zeros=groups groups=3 m=40 "
         "n=144 "
         "k=256",
         "tma BM=48 BN=128 GROUPS=1 STAGES=3 SPLIT=1 RESIDENT=1 ROUND=0 SHARES=1"},
        {"dtype=bf16 out=bf16 weights=mxfp4 epilogue=swiglu groups=4 m=50 n=48 k=160",
         "tma BM=16 BN=64 GROUPS=1 STAGES=2 SPLIT=1 RESIDENT=0 ROUND=1 SHARES=1"},
        {"dtype=f16 out=f16 epilogue=geglu groups=2 m=30 n=112 k=512",
         "tma BM=32 BN=192 GROUPS=3 STAGES=2 SPLIT=1 RESIDENT=1 ROUND=0 SHARES=1"}}) {
    const Problem rows = catalog().read(fmt::format("quantized_grouped_gemm {}", key)).value();
    const Operation& operation = built_in("quantized_grouped_gemm");
    const auto config = operation.space(in_panels(rows), hopper).parse(text);
    ASSERT_TRUE(config) << config.failure().message;
    for (const auto style : {plain, adversarial}) {
      expect_equal_of_panels(operation, rows, hopper, *config, device("hip-host:0"), style, 3);
    }
  }
}

TEST(GroupedPanels, AreWholeAndOfFormatsWithScalesBesideThem) {
  const auto refused = [](const std::string& key) {
    const auto problem = catalog().read(key);
    return problem ? std::string() : problem.failure().message;
  };
  const std::string grouped = "quantized_grouped_gemm dtype=f16 out=f16 packing=panels ";
  EXPECT_NE(refused(grouped + "epilogue=swiglu groups=2 m=8 n=24 k=128").find("multiple of 16"),
            std::string::npos);
  EXPECT_NE(refused(grouped + "weights=q8_0 groups=2 m=8 n=16 k=128")
                .find("needs weights int4, int8 or mxfp4"),
            std::string::npos);
  const std::string experts = "experts dtype=f16 out=f16 packing=panels ";
  for (const char* weights : {"weights=q4_0 ", "", "scales=row "}) {
    EXPECT_NE(refused(experts + weights + "tokens=1 experts=2 top_k=1 dim=64 hidden=64")
                  .find("needs weights int4, int8 or mxfp4"),
              std::string::npos)
        << weights;
  }
}

TEST(GroupedPanels, HaveTheVariantsOfRows) {
  for (const char* gpu : {"sm_80", "sm_90", "gfx90a", "gfx942", "gfx1100", "gfx1201"}) {
    const DeviceInfo info = architecture_info(gpu).value();
    for (const char* key :
         {"quantized_grouped_gemm dtype=f16 out=f16 groups=8 m=1024 n=4096 k=4096",
          "quantized_grouped_gemm dtype=f16 out=f16 groups=8 m=16 n=4096 k=4096",
          "experts dtype=f16 out=f16 weights=int4 tokens=1 experts=8 top_k=2 "
          "dim=4096 hidden=14336"}) {
      const Problem rows = catalog().read(key).value();
      const Operation& operation = built_in(rows.op.c_str());
      EXPECT_EQ(operation.default_config(in_panels(rows), info).text(),
                operation.default_config(rows, info).text())
          << gpu << ' ' << key;
      EXPECT_EQ(operation.unfused(in_panels(rows)).key(), rows.key());
    }
  }
}

}  // namespace
}  // namespace greta::test::grouped_panels_test
