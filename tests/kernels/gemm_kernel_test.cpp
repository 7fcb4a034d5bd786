// Protects: GEMM kernels are correct on every device, for every type, layout, epilogue and partial
// tile.

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <tuple>

#include "kernels/model/random.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::gemm_kernel_test {
namespace {

using test::gemm_problem;
using Random = std::mt19937_64;

template <typename List>
const auto& pick(const List& list, Random& random) {
  return list[uniform_below(random, std::size(list))];
}

/// Often a multiple of 8, so that wide vectors are allowed.
std::int64_t extent(Random& random, std::int64_t most) {
  const auto size =
      static_cast<std::int64_t>(1 + uniform_below(random, static_cast<std::uint64_t>(most)));
  return uniform_below(random, 2) == 0 ? size : std::min((size + 7) / 8 * 8, most);
}

/// Returns a small problem with partial tiles in every dimension. Types and layouts alternate with
/// the number through all combinations; epilogues and factors are drawn.
Problem random_problem(std::size_t number, Random& random, std::int64_t most_rows) {
  const std::string layouts[] = {"nn", "nt", "tn"};
  const std::string epilogues[] = {"none", "bias",          "residual",      "silu",
                                   "gelu", "bias,residual", "residual,silu", "bias,residual,gelu"};
  const std::string alphas[] = {"1", "1", "-0.5"}, betas[] = {"0", "0", "2"};
  std::vector<std::pair<std::string, std::string>> attributes;
  const auto add = [&](const char* name, const std::string& value, const char* fallback) {
    if (value != fallback) attributes.emplace_back(name, value);
  };
  const auto& types = built_in("gemm").dtypes;
  const std::string gates[] = {"none", "bias,residual", "swiglu", "bias,geglu"};
  const bool few = most_rows <= 8;  // for which there are gates and norms
  const std::string& epilogue = few ? pick(gates, random) : pick(epilogues, random);
  const std::string prologues[] = {"none", "rmsnorm"};
  const std::string& prologue = few ? pick(prologues, random) : prologues[0];
  add("layout", layouts[number / types.size() % 3], "nn");
  add("epilogue", epilogue, "none");
  add("prologue", prologue, "none");
  if (prologue != "none") add("epsilon", "0.25", "1e-05");
  add("alpha", pick(alphas, random), "1");
  if (!epilogue.ends_with("glu")) add("beta", pick(betas, random), "0");
  const auto [in, out] = types[number % types.size()];
  const std::int64_t m = extent(random, most_rows);
  const std::int64_t n = extent(random, 200), k = extent(random, 200);
  return gemm_problem(m, n, k, in, out, attributes);
}

void expect_right(Device& device, const Problem& problem, const Config& config,
                  std::uint64_t seed = 1) {
  test::expect_right(built_in("gemm"), problem,
                     built_in("gemm").plan(problem, device.info(), config), config.text(), seed,
                     device);
}

/// One variant on one device: GPUs, the CPU through Vulkan, and the GPUs that hip-host emulates.
class GemmVariant : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  /// Returns whether the device takes this number of random_problem(). The devices of hip-host, on
  /// which compiling a kernel takes about a second, share 15 numbers, in which each type meets each
  /// layout; the fifth one takes those of the first one, which it is but for its warpgroups.
  bool takes(std::size_t number) const {
    return info_.backend != Api::hip_host ||
           number % 4 == static_cast<std::size_t>(info_.index) % 4;
  }

  /// Returns whether the device has matrix operations for a type, of so many rows at least.
  bool multiplies(DType type, std::uint32_t rows = 1) const {
    return std::any_of(info_.matrix_operations.begin(), info_.matrix_operations.end(),
                       [&](const MatrixOperation& o) { return o.input == type && o.m >= rows; });
  }

  /// Returns whether the variant has products of TF32 on the device for this number of
  /// random_problem().
  bool multiplies_tf32(std::size_t number) const {
    if (info_.language != Language::hip) return false;
    if (variant_.name == "tf32x3") return matrix_cores(info_.architecture) == MatrixCores::mma;
    const bool neither_along_k = number / built_in("gemm").dtypes.size() % 3 == 2;  // layout tn
    return has_warpgroup_products(info_.architecture) && !neither_along_k;
  }

  Device& device_ = test::device(std::get<0>(GetParam()));
  const DeviceInfo& info_ = device_.info();
  const Variant& variant_ =
      *std::find_if(built_in("gemm").variants.begin(), built_in("gemm").variants.end(),
                    [](const Variant& variant) { return variant.name == std::get<1>(GetParam()); });
};

TEST_P(GemmVariant, IsRightForEveryTypeAndLayout) {
  Random random(static_cast<unsigned>(info_.index));
  int taken = 0;
  for (std::size_t number = 0; number < 15; ++number) {
    if (!takes(number)) continue;
    ++taken;
    bool right = false;
    const bool splits = variant_.name.starts_with("tf32x3");
    for (int tries = 0; tries < 20; ++tries) {  // some problems have e.g. too few K steps to split
      Problem problem = random_problem(number, random, variant_.name == "gemv" ? 8 : 200);
      if (splits && problem.dtype == DType::f32) problem.attributes.emplace_back("math", "tf32x3");
      const Space space({variant_.space(built_in("gemm").shape(problem), info_)});
      if (space.count() == 0) continue;
      Config config = space.sample(random);
      if (config.has("SPLITK"))
        config.value("SPLITK") = 0;  // few algorithms of a library have slices
      expect_right(device_, problem, config, number);
      right = true;
      break;
    }
    const DTypes& types = built_in("gemm").dtypes[number % built_in("gemm").dtypes.size()];
    const bool possible = variant_.name == "matrix" ? multiplies(types.in)
                          : variant_.name == "tma"  ? multiplies(types.in, 64)
                          : splits ? types.in == DType::f32 && multiplies_tf32(number)
                          : variant_.name == vendor_variant ? !info_.matrix_library.empty()
                                                            : true;
    EXPECT_EQ(right, possible) << number;
  }
  EXPECT_GE(taken, 3);
}

/// Returns a problem of many rows with gates: lines of B alternate with those n lines further.
Problem gated_problem(std::size_t number, Random& random) {
  const auto& types = built_in("gemm").dtypes;
  const auto [in, out] = types[number % types.size()];
  const std::string epilogues[] = {"swiglu", "geglu", "bias,swiglu"};
  std::vector<std::pair<std::string, std::string>> attributes{{"layout", "nt"},
                                                              {"epilogue", epilogues[number % 3]}};
  if (number % 2 == 1) attributes.emplace_back("alpha", "-0.5");
  if (number % 4 == 2) attributes[0].second = "tt";
  const std::int64_t m = 8 + extent(random, 120), n = extent(random, 120);
  return gemm_problem(m, n, extent(random, 200), in, out, attributes);
}

TEST_P(GemmVariant, GatesManyRows) {
  Random random(static_cast<unsigned>(info_.index) + 7);
  int taken = 0;
  const bool with_tiles = variant_.name == "tiled" || variant_.name == "split_k" ||
                          variant_.name == "matrix" || variant_.name == "tma";
  for (std::size_t number = 0; number < 8; ++number) {
    if (!takes(number)) continue;
    ++taken;
    const DTypes& types = built_in("gemm").dtypes[number % built_in("gemm").dtypes.size()];
    bool right = false;
    for (int tries = 0; with_tiles && !right && tries < 20; ++tries) {
      const Problem problem = gated_problem(number, random);
      const Space space({variant_.space(built_in("gemm").shape(problem), info_)});
      if (space.count() == 0) continue;
      expect_right(device_, problem, space.sample(random), number);
      right = true;
    }
    const bool possible = variant_.name == "matrix" ? multiplies(types.in)
                          : variant_.name == "tma"  ? multiplies(types.in, 64)
                                                    : with_tiles;
    EXPECT_EQ(right, possible) << number;
  }
  EXPECT_GE(taken, 2);
}

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const Variant& variant : built_in("gemm").variants) names.push_back(variant.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Devices, GemmVariant,
                         ::testing::Combine(::testing::ValuesIn(test::usable_devices()),
                                            ::testing::ValuesIn(variant_names())),
                         [](const auto& instance) {
                           return test::device_name(std::get<0>(instance.param)) + "_" +
                                  std::get<1>(instance.param);
                         });

class GemmKernel : public ::testing::TestWithParam<std::string> {
 protected:
  Space space(const Problem& problem) const { return built_in("gemm").space(problem, info_); }

  /// Returns the parameters that only one language has, as configuration text.
  // The other parameters of tiled or split_k, for f32 in layout nn.
  std::string rest(bool tiled) const {
    if (info_.language == Language::glsl) return " SUBGROUP=0";
    const std::string fold = tiled ? "" : " FOLD=1";
    return has_lane_copies(info_.architecture) ? " ORDER=0 TRANSPOSE=0" + fold : fold;
  }

  Device& device_ = test::device(GetParam());
  const DeviceInfo& info_ = device_.info();
};

TEST_P(GemmKernel, DefaultsAndNaive) {
  Random random(4);
  for (const std::size_t number : {0, 6, 13}) {
    const Problem problem = random_problem(number, random, number == 6 ? 8 : 200);
    expect_right(device_, problem, built_in("gemm").default_config(problem, info_));
    expect_right(device_, problem, *built_in("gemm").naive);
  }
  const Problem one = gemm_problem(1, 1, 1);
  expect_right(device_, one, built_in("gemm").default_config(one, info_));
}

TEST_P(GemmKernel, WalksLongKAndManyTilesInGroups) {
  const Problem problem = gemm_problem(300, 260, 1026);
  for (const char* text : {"tiled BM=32 BN=64 TM=4 TN=4 LX=8 BK=16 STAGES=2 PAD=4 VA=2 VB=4 "
                           "UNROLL=2 SWIZZLE=4",
                           "split_k BM=64 BN=32 TM=4 TN=4 LX=4 BK=8 STAGES=1 PAD=0 VA=1 VB=1 "
                           "UNROLL=1 SWIZZLE=16 SPLIT=8"}) {
    const bool tiled = std::string(text).starts_with("tiled");
    expect_right(device_, problem, space(problem).parse(text + rest(tiled)).value());
  }
}

// Copies around the ring of buffers, past both operands' ends, in each order of products;
// transposed operands whose rows are padded. With BK=16, lines of single elements are copied with
// their elements exchanged if the whole step is unrolled, and else not.
TEST(GemmTiles, AreCopiedPastTheRegisters) {
  Device& device = test::device("hip-host:0");
  const std::string tiles =
      "tiled BM=32 BN=64 TM=4 TN=8 LX=4 BK=8 PAD=4 UNROLL=8 SWIZZLE=2 VA=1 STAGES=";
  const auto expect = [&](const char* layout, const std::string& rest) {
    const Problem problem = gemm_problem(70, 131, 99, DType::f32, DType::f32, {{"layout", layout}});
    const Space space = built_in("gemm").space(problem, device.info());
    expect_right(device, problem, space.parse(tiles + rest).value());
  };
  expect("nn", "3 VB=1 ORDER=0 TRANSPOSE=0");
  expect("nt", "5 VB=1 ORDER=1 TRANSPOSE=0");
  expect("tn", "4 VB=1 ORDER=2");
  expect("tt", "3 VB=4 ORDER=3 TRANSPOSE=1");
  expect("nt", "4 VB=4 ORDER=1 TRANSPOSE=1");
  const auto expect_of_16 = [&](const char* layout, const char* rest) {
    const Problem problem = gemm_problem(70, 131, 99, DType::f32, DType::f32, {{"layout", layout}});
    const std::string text =
        std::string("tiled BM=32 BN=64 TM=4 TN=8 LX=4 BK=16 PAD=4 VA=1 VB=1 SWIZZLE=2 ") + rest;
    expect_right(device, problem,
                 built_in("gemm").space(problem, device.info()).parse(text).value());
  };
  expect_of_16("nt", "STAGES=3 UNROLL=16 ORDER=0 TRANSPOSE=0");
  expect_of_16("nt", "STAGES=4 UNROLL=8 ORDER=1 TRANSPOSE=0");
  expect_of_16("nn", "STAGES=4 UNROLL=16 ORDER=2 TRANSPOSE=0");
  expect_of_16("tt", "STAGES=5 UNROLL=16 ORDER=3 TRANSPOSE=0");
}

// Several columns per thread, several waves per column and m = 3. K is long enough for every wave
// to get a part of it.
TEST_P(GemmKernel, GemvAddsTheWavesOfSeveralRowsAndColumns) {
  for (const DType type : {DType::f32, DType::f16}) {
    const Problem problem = gemm_problem(3, 40, 1096, type, type, {{"layout", "nt"}});
    for (const char* text : {"gemv THREADS=256 COLS=2 VB=4 VA=4 TN=4 UNROLL=2 SPLIT=2",
                             "gemv THREADS=512 COLS=1 VB=1 VA=1 TN=8 UNROLL=1 SPLIT=1"}) {
      expect_right(device_, problem, space(problem).parse(text).value());
    }
  }
}

// Slices, several waves and columns, gates beside their ups in a thread and in others, and rows
// that end within a load.
TEST_P(GemmKernel, GemvNormalisesAndGates) {
  for (const DType type : {DType::f32, DType::f16}) {
    const Problem problem =
        gemm_problem(3, 44, 1096, type, type,
                     {{"layout", "nt"}, {"epilogue", "bias,swiglu"}, {"prologue", "rmsnorm"}});
    for (const char* text : {"gemv THREADS=256 COLS=4 VB=4 VA=4 TN=4 UNROLL=2 SPLIT=2",
                             "gemv THREADS=128 COLS=1 VB=4 VA=4 TN=2 UNROLL=1 SPLIT=1",
                             "gemv THREADS=512 COLS=8 VB=1 VA=1 TN=1 UNROLL=4 SPLIT=4"}) {
      expect_right(device_, problem, space(problem).parse(text).value());
    }
  }
  const Problem across = gemm_problem(2, 24, 300, DType::f32, DType::f32,
                                      {{"epilogue", "geglu"}, {"prologue", "rmsnorm"}});
  for (const char* text : {"gemv THREADS=64 COLS=2 VB=4 VA=2 TN=1 UNROLL=4 SPLIT=2",
                           "gemv THREADS=256 COLS=32 VB=1 VA=4 TN=1 UNROLL=16 SPLIT=1"}) {
    expect_right(device_, across, space(across).parse(text).value());
  }
  expect_right(device_, across, *built_in("gemm").naive);
}

// Gates of many rows need lines of B that can alternate.
TEST_P(GemmKernel, GatesOfManyRowsAreLinesOfB) {
  const Problem across = gemm_problem(64, 40, 64, DType::f32, DType::f32, {{"epilogue", "swiglu"}});
  EXPECT_FALSE(check_problem(built_in("gemm"), across));
  Problem along = across;
  along.attributes.insert(along.attributes.begin(), {"layout", "nt"});
  EXPECT_TRUE(check_problem(built_in("gemm"), along));
  EXPECT_NE(built_in("gemm").default_config(along, info_).variant, "naive");
  Problem few = across;
  few.extent("m") = 8;
  EXPECT_TRUE(check_problem(built_in("gemm"), few));
}

TEST_P(GemmKernel, FactorsAreArgumentsNotSource) {
  const Problem plain = gemm_problem(33, 40, 17);
  const Problem scaled =
      gemm_problem(33, 40, 17, DType::f32, DType::f32, {{"alpha", "3"}, {"beta", "-1"}});
  const Config config = built_in("gemm").default_config(plain, info_);
  const auto a = built_in("gemm").plan(plain, info_, config);
  const auto b = built_in("gemm").plan(scaled, info_, config);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->sources[0].text, b->sources[0].text);
  expect_right(device_, scaled, config);
}

TEST_P(GemmKernel, TheTextRefusesBrokenParameters) {
  const Problem problem = gemm_problem(64, 64, 64);
  const Config config = space(problem)
                            .parse(
                                "tiled BM=64 BN=64 TM=8 TN=8 LX=8 BK=8 STAGES=1 PAD=0 VA=4 VB=4 "
                                "UNROLL=1 SWIZZLE=1" +
                                rest(true))
                            .value();
  const auto plan = built_in("gemm").plan(problem, info_, config);
  ASSERT_TRUE(plan) << plan.failure().message;
  const auto compile_with = [&](const std::string& from, const std::string& to) {
    KernelSource source = plan->sources[0];
    const auto at = source.text.find(from);
    if (at == std::string::npos) return std::string("no ") + from;
    source.text.replace(at, from.size(), to);
    const auto kernel = device_.compile(source);
    return kernel ? "compiled" : kernel.failure().log;
  };
  EXPECT_NE(compile_with("#define PAD ", "#define PADDING ").find("must be defined"),
            std::string::npos);
  EXPECT_NE(compile_with("#define TM 8", "#define TM 6").find("4-wide pieces"), std::string::npos);
  EXPECT_NE(compile_with("#define UNROLL 1", "#define UNROLL 3").find("UNROLL divides BK"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Devices, GemmKernel, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

// No CPU and no sanitizer detects GLSL kernels that write beyond their shared memory. It holds sums
// of all lanes, and of groups of about the square root of their number.
TEST(GemvInGlsl, HasSharedMemoryForTheSumsOfItsLanes) {
  Device& device = test::device("vulkan:0");
  std::mt19937_64 random(5);
  int checked = 0;
  for (const std::string layout : {"nn", "nt"}) {
    const Problem problem = gemm_problem(2, 64, 4096, DType::f32, DType::f32, {{"layout", layout}});
    const Space space = built_in("gemm").space(problem, device.info());
    for (int i = 0; i < 30; ++i) {
      const Config c = space.sample("gemv", random);
      if (c["SPLIT"] != 1) continue;  // others have a counter as well
      const int lanes = c["THREADS"] / c["COLS"];
      const int columns = c["COLS"] * c[layout == "nt" ? "TN" : "VB"];
      const int parts = lanes < 16 ? 1 : lanes < 64 ? 4 : lanes < 256 ? 8 : lanes < 1024 ? 16 : 32;
      const auto plan = built_in("gemm").plan(problem, device.info(), c).value();
      const auto kernel = device.compile(plan.sources.at(0)).value();
      EXPECT_GE(kernel->statistics().shared_memory_bytes,
                static_cast<std::uint32_t>(4 * columns * (lanes + parts)))
          << c.text();
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}

// Mesa's CPU driver ends loops after 65535 iterations, so long K needs slices there.
TEST(GemmKernelOnTheBestDevice, TheDefaultIsRightForLongK) {
  const Problem problem = gemm_problem(33, 34, 150000);
  Device& device = test::device();
  expect_right(device, problem, built_in("gemm").default_config(problem, device.info()));
}

}  // namespace
}  // namespace greta::test::gemm_kernel_test
