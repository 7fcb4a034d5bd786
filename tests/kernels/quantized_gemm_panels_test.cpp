// Protects: products of panels of 16 rows have the results of rows, bit for bit, in every variant
// that reads them, on each device: each format with scales beside it, each length of groups, zero
// points, types, epilogues and norms, several tiles of a wave and workgroups that stay. Where bytes
// of panels lie, and what has no panels.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/weight_packing.hpp"
#include "kernels/model/weight_panels.hpp"
#include "tests/kernels/hopper_runner.hpp"
#include "tests/kernels/panel_cases.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta::test::quantized_gemm_panels_test {
namespace {

using kernels::panels_to_rows;
using kernels::rows_to_panels;

const Operation& operation() {
  return built_in("quantized_gemm");
}

Problem problem_of(const std::string& attributes, const std::string& extents) {
  return catalog().read(fmt::format("quantized_gemm {} {}", attributes, extents)).value();
}

/// Expects right and equal products of rows and of panels.
void expect_equal(const std::string& attributes, const std::string& extents,
                  const DeviceInfo& planned, const Config& config, Device& on,
                  kernels::InputStyle style, std::uint64_t seed) {
  expect_equal_of_panels(operation(), problem_of(attributes, extents), planned, config, on, style,
                         seed);
}

/// Each variant of each device: a default configuration, and one of each variant.
TEST(QuantizedGemmPanels, EqualRowsOnEachDevice) {
  std::uint64_t seed = 1;
  for (const std::string& id : usable_devices()) {
    Device& on = device(id);
    if (!on.info().is_cpu()) continue;
    for (const auto& [attributes, extents] : {
             std::pair{"dtype=f16 out=f16", "m=3 n=48 k=512"},
             {"dtype=bf16 out=f32 weights=int8 group=\"64\" zeros=groups", "m=20 n=64 k=256"},
             {"dtype=f16 out=f32 weights=mxfp4 epilogue=swiglu", "m=2 n=32 k=96"},
             {"dtype=f16 out=f32 weights=int8 epilogue=bias", "m=17 n=16 k=384"},
             {"dtype=bf16 out=bf16 zeros=groups epilogue=swiglu", "m=1 n=80 k=768"},
         }) {
      const Problem problem = problem_of(std::string(attributes) + " packing=panels", extents);
      for (const Config& config : one_of_each(operation(), problem, on.info(), seed)) {
        expect_equal(attributes, extents, on.info(), config, on,
                     seed % 2 == 0 ? kernels::InputStyle::plain : kernels::InputStyle::adversarial,
                     seed);
        ++seed;
      }
    }
  }
}

struct Case {
  const char* attributes;
  const char* extents;
  const char* config;
};

void expect_equal_of_hopper(const Case& of) {
  const DeviceInfo hopper = hopper_of(2);
  const Problem problem = problem_of(std::string(of.attributes) + " packing=panels", of.extents);
  const auto config = operation().space(problem, hopper).parse(of.config);
  ASSERT_TRUE(config) << config.failure().message;
  for (const auto style : {kernels::InputStyle::plain, kernels::InputStyle::adversarial}) {
    expect_equal(of.attributes, of.extents, hopper, *config, device("hip-host:0"), style, 7);
  }
}

TEST(QuantizedGemmPanels, EqualRowsOfLaneCopies) {
  for (const Case& of : {
           Case{"dtype=f16 out=f16", "m=3 n=80 k=1024",
                "stream WAVES=2 TN=2 RT=1 STAGES=3 RESIDENT=1"},
           {"dtype=bf16 out=f32 weights=int8 zeros=groups", "m=17 n=48 k=768",
            "stream WAVES=2 TN=1 RT=2 STAGES=2 RESIDENT=0"},
           {"dtype=f16 out=f16 epilogue=swiglu", "m=5 n=48 k=512",
            "stream WAVES=2 TN=1 RT=1 STAGES=2 RESIDENT=1"},
           {"dtype=bf16 out=bf16 weights=int8 epilogue=swiglu", "m=2 n=80 k=512",
            "stream WAVES=2 TN=4 RT=1 STAGES=2 RESIDENT=1"},
           {"dtype=f16 out=f16 prologue=rmsnorm zeros=groups", "m=4 n=48 k=512",
            "stream WAVES=2 TN=2 RT=1 STAGES=2 RESIDENT=1"},
           {"dtype=f16 out=f32 zeros=groups", "m=1 n=80 k=1024",
            "digits WAVES=2 TN=2 STAGES=3 RESIDENT=1"},
           {"dtype=f16 out=f16 weights=int8 epilogue=swiglu", "m=1 n=32 k=512",
            "digits WAVES=2 TN=1 STAGES=2 RESIDENT=0"},
       }) {
    expect_equal_of_hopper(of);
  }
}

/// Pieces of 32, 16 and 8 weights, of 16, 8 and 4 bytes.
TEST(QuantizedGemmPanels, EqualRowsOfClusters) {
  for (const Case& of : {
           Case{"dtype=f16 out=f16", "m=16 n=48 k=1280",
                "cluster WAVES=4 SHARES=2 TN=1 UNROLL=2 SPLIT=1"},
           {"dtype=bf16 out=f32 weights=int8 epilogue=swiglu", "m=3 n=48 k=512",
            "cluster WAVES=4 SHARES=1 TN=2 UNROLL=1 SPLIT=1"},
           {"dtype=f16 out=f32 group=\"64\" zeros=groups", "m=3 n=64 k=640",
            "cluster WAVES=4 SHARES=2 TN=1 UNROLL=2 SPLIT=1"},
           {"dtype=bf16 out=f32 group=\"32\"", "m=8 n=80 k=640",
            "cluster WAVES=4 SHARES=1 TN=2 UNROLL=4 SPLIT=1"},
           {"dtype=f16 out=f32 group=\"32\"", "m=16 n=32 k=384",
            "cluster WAVES=2 SHARES=2 TN=1 UNROLL=1 SPLIT=1"},
           {"dtype=f16 out=f32 weights=int8 group=\"32\" zeros=groups", "m=11 n=48 k=512",
            "cluster WAVES=4 SHARES=2 TN=1 UNROLL=1 SPLIT=1"},
           {"dtype=bf16 out=bf16 weights=int8 group=\"64\" zeros=groups", "m=16 n=48 k=384",
            "cluster WAVES=4 SHARES=1 TN=1 UNROLL=2 SPLIT=1"},
       }) {
    expect_equal_of_hopper(of);
  }
}

/// Tiles past the ends, boxes that are read in two steps, two products of a warpgroup, and gates.
TEST(QuantizedGemmPanels, EqualRowsOfTensorCopies) {
  for (const Case& of : {
           Case{"dtype=f16 out=f16", "m=70 n=208 k=1152",
                "tma BM=64 BN=128 GROUPS=2 STAGES=2 SPLIT=1 RESIDENT=0 ROUND=0 SHARES=1"},
           {"dtype=f16 out=f32 group=\"64\" zeros=groups", "m=100 n=304 k=448",
            "tma BM=48 BN=128 GROUPS=1 STAGES=3 SPLIT=1 RESIDENT=1 ROUND=0 SHARES=1"},
           {"dtype=bf16 out=bf16 group=\"32\" zeros=groups", "m=33 n=400 k=352",
            "tma BM=32 BN=192 GROUPS=3 STAGES=2 SPLIT=1 RESIDENT=1 ROUND=0 SHARES=1"},
           {"dtype=f16 out=f16 weights=int8", "m=70 n=144 k=640",
            "tma BM=64 BN=128 GROUPS=2 STAGES=3 SPLIT=1 RESIDENT=0 ROUND=0 SHARES=1"},
           {"dtype=bf16 out=f32 weights=mxfp4", "m=40 n=80 k=416",
            "tma BM=32 BN=64 GROUPS=1 STAGES=2 SPLIT=1 RESIDENT=1 ROUND=1 SHARES=1"},
           {"dtype=f16 out=f16 math=rounded_weights epilogue=bias", "m=40 n=272 k=512",
            "tma BM=32 BN=256 GROUPS=2 STAGES=2 SPLIT=1 RESIDENT=0 ROUND=1 SHARES=1"},
           {"dtype=bf16 out=f32 epilogue=swiglu", "m=40 n=144 k=384",
            "tma BM=32 BN=128 GROUPS=1 STAGES=2 SPLIT=1 RESIDENT=1 ROUND=0 SHARES=1"},
           {"dtype=f16 out=f16 weights=int8 epilogue=swiglu", "m=20 n=112 k=256",
            "tma BM=16 BN=128 GROUPS=2 STAGES=2 SPLIT=1 RESIDENT=0 ROUND=0 SHARES=1"},
       }) {
    expect_equal_of_hopper(of);
  }
}

/// As AITER's shuffle_weight writes it: 16 rows x 16 bytes, then the next 16 bytes of these rows.
TEST(QuantizedGemmPanels, HaveUnitsOfSixteenRows) {
  constexpr std::int64_t rows = 32, bytes = 48;
  std::vector<std::byte> numbers(rows * bytes), panels(rows * bytes), again(rows * bytes);
  for (std::int64_t i = 0; i < rows * bytes; ++i) numbers[i] = static_cast<std::byte>(i * 37 >> 2);
  rows_to_panels(numbers.data(), rows, bytes, panels.data());
  std::size_t at = 0;
  for (std::int64_t panel = 0; panel < rows / 16; ++panel) {
    for (std::int64_t unit = 0; unit < bytes / 16; ++unit) {
      for (std::int64_t row = 0; row < 16; ++row) {
        for (std::int64_t byte = 0; byte < 16; ++byte, ++at) {
          ASSERT_EQ(panels[at], numbers[(panel * 16 + row) * bytes + unit * 16 + byte]) << at;
        }
      }
    }
  }
  panels_to_rows(panels.data(), rows, bytes, again.data());
  EXPECT_EQ(again, numbers);
}

TEST(QuantizedGemmPanels, AreWholeAndOfFormatsWithScalesBesideThem) {
  const auto refused = [](const std::string& key) {
    const auto problem = catalog().read("quantized_gemm dtype=f16 out=f16 packing=panels " + key);
    return problem ? std::string() : problem.failure().message;
  };
  EXPECT_EQ(refused("m=1 n=16 k=128"), "");
  EXPECT_EQ(refused("weights=mxfp4 m=1 n=16 k=32"), "");
  EXPECT_NE(refused("m=1 n=24 k=128").find("must be a multiple of 16 with packing panels"),
            std::string::npos);
  EXPECT_NE(refused("epilogue=swiglu m=1 n=24 k=128").find("must be a multiple of 16"),
            std::string::npos);
  EXPECT_NE(refused("weights=q4_0 m=1 n=16 k=128").find("needs weights int4, int8 or mxfp4"),
            std::string::npos);
}

/// A word of AWQ has one variant for few rows on every GPU; panels have those of rows.
TEST(QuantizedGemmPanels, HaveTheVariantsOfRows) {
  for (const char* gpu : {"sm_80", "sm_90", "gfx90a", "gfx942", "gfx1100", "gfx1201"}) {
    const DeviceInfo info = architecture_info(gpu).value();
    for (const char* extents : {"m=1 n=4096 k=4096", "m=2048 n=4096 k=4096"}) {
      const Problem rows = problem_of("dtype=f16 out=f16", extents);
      const Problem panels = problem_of("dtype=f16 out=f16 packing=panels", extents);
      EXPECT_EQ(operation().default_config(panels, info).text(),
                operation().default_config(rows, info).text())
          << gpu << ' ' << extents;
    }
  }
}

}  // namespace
}  // namespace greta::test::quantized_gemm_panels_test
