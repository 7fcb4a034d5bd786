// Protects: products of B in panels of 16 rows have the results of rows, bit for bit, in every
// variant that reads them, on each device, with fragments that are loaded to registers directly
// (DIRECT) as well: types, epilogues, norms, gates, batches, slices, partial tiles and steps. Where
// bytes of panels lie, and what has no panels.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "kernels/model/weight_panels.hpp"
#include "kernels/sampling/candidates.hpp"
#include "tests/kernels/hopper_runner.hpp"

namespace greta::test::gemm_panels_test {
namespace {

const Operation& gemm() {
  return built_in("gemm");
}

Problem problem_of(const std::string& attributes, const std::string& extents) {
  return catalog().read(fmt::format("gemm {} {}", attributes, extents)).value();
}

/// Returns C, which is right.
std::vector<std::byte> product(const Problem& problem, const Config& config,
                               const std::vector<HostTensor>& inputs, Device& on) {
  SCOPED_TRACE(problem.key() + " | " + config.text());
  const auto plan = gemm().plan(problem, on.info(), config);
  if (!plan) {
    ADD_FAILURE() << plan.failure().message;
    return {};
  }
  const auto done = run_plan(on, *plan, gemm().tensors(problem), inputs, 2);
  if (!done) {
    ADD_FAILURE() << done.failure().message << '\n' << done.failure().log;
    return {};
  }
  EXPECT_EQ(done->overrun, "");
  EXPECT_EQ(done->changed, "");
  const Verdict verdict = gemm().reference(problem, inputs, 1)->check(done->outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
  return done->outputs.at(0).data;
}

/// Returns a configuration of panels as rows have it, if they do.
std::optional<Config> of_rows(const Problem& rows, const DeviceInfo& device, Config config) {
  std::erase_if(config.values, [](const auto& value) { return value.first == "DIRECT"; });
  const auto same = gemm().space(rows, device).parse(config.text());
  return same ? std::optional(*same) : std::nullopt;
}

/// Expects a right product of panels, and if rows have the configuration, the same one of these.
/// Returns whether they have.
bool expect_equal(const std::string& attributes, const std::string& extents, const Config& config,
                  Device& on, kernels::InputStyle style, std::uint64_t seed) {
  const Problem rows = problem_of(attributes, extents);
  const Problem panels = problem_of(attributes + " packing=panels", extents);
  std::vector<HostTensor> inputs = gemm().inputs(rows, seed, style);
  const std::vector<HostTensor> stored = inputs;
  inputs[1].data = kernels::panels_of_rows(
      inputs[1].data, static_cast<std::int64_t>(bytes_of(rows.dtype, inputs[1].spec.cols)));
  EXPECT_NE(inputs[1].data, stored[1].data);
  const auto result = product(panels, config, inputs, on);
  const auto same = of_rows(rows, on.info(), config);
  if (!same) return false;
  // Threads of gemv that share a column are others.
  const bool equal = product(rows, *same, stored, on) == result || config.variant == "gemv";
  EXPECT_TRUE(equal) << panels.key() << " | " << config.text();
  return true;
}

/// Draws problems that panels can be of, and configurations of a variant.
class PanelProblems {
 public:
  PanelProblems(Device& on, std::string variant, std::uint64_t seed)
      : on_(on), variant_(std::move(variant)), random_(seed) {}

  /// Returns the number of configurations that ran, and adds those that rows have to `common`.
  int check(int problems, std::size_t configs, int& common) {
    int ran = 0;
    for (int i = 0; i < problems; ++i) {
      const std::string attributes = draw_attributes(), extents = draw_extents();
      const Problem panels = problem_of(attributes + " packing=panels", extents);
      for (const auto& each :
           kernels::sample_candidates(gemm(), panels, on_.info(), variant_, configs, random_())) {
        const auto style =
            ran % 2 == 0 ? kernels::InputStyle::plain : kernels::InputStyle::adversarial;
        common += expect_equal(attributes, extents, each.config, on_, style, random_()) ? 1 : 0;
        ++ran;
      }
    }
    return ran;
  }

 private:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(uniform_below(random_, static_cast<std::uint64_t>(bound)));
  }
  std::string draw_attributes() {
    static constexpr std::array epilogues{"",     "bias",   "residual", "silu",
                                          "gelu", "swiglu", "geglu",    "bias,residual"};
    const char* in = below(2) == 0 ? "f16" : "bf16";
    std::string text =
        fmt::format("dtype={} out={} layout=nt", in, below(2) == 0 ? in : std::string("f32"));
    const std::string epilogue = epilogues[static_cast<std::size_t>(below(epilogues.size()))];
    if (!epilogue.empty()) text += " epilogue=" + epilogue;
    if (variant_ == "gemv" && below(3) == 0) text += " prologue=rmsnorm";
    batch_ = below(4) == 0 ? 2 + below(2) : 1;
    if (batch_ > 1 && below(2) == 0) text += " shared=b";
    return text;
  }
  std::string draw_extents() {
    const std::int64_t m = variant_ == "gemv" ? 1 + below(8) : 5 + below(100);
    std::string text = fmt::format("m={} n={} k={}", m, 16 * (1 + below(8)), 8 * (1 + below(80)));
    if (batch_ > 1) text += fmt::format(" batch={}", batch_);
    return text;
  }

  Device& on_;
  std::string variant_;
  std::mt19937_64 random_;
  std::int64_t batch_ = 1;
};

class GemmPanels : public ::testing::TestWithParam<std::string> {};

TEST_P(GemmPanels, HaveTheResultsOfRows) {
  Device& on = device(GetParam());
  for (const char* variant : {"gemv", "naive", "tiled", "split_k"}) {
    int common = 0;
    const int ran = PanelProblems(on, variant, 11).check(2, 2, common);
    EXPECT_GE(ran, 2) << variant;
    EXPECT_EQ(common, ran) << variant;
  }
}

class GemmPanelsOfMatrixCores : public GemmPanels {};

TEST_P(GemmPanelsOfMatrixCores, HaveTheResultsOfRows) {
  Device& on = device(GetParam());
  for (const char* variant : {"matrix", "tma"}) {
    int common = 0;
    const int ran = PanelProblems(on, variant, 13).check(8, 2, common);
    EXPECT_GE(ran, variant == std::string("matrix") ? 10 : 0);
    EXPECT_GE(common, ran / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GemmPanels, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });
INSTANTIATE_TEST_SUITE_P(Devices, GemmPanelsOfMatrixCores,
                         ::testing::ValuesIn(test::devices_that_multiply(DType::bf16)),
                         [](const auto& instance) { return test::device_name(instance.param); });

/// Kernels for sm_90: boxes of panels, and products that read them without a swizzle.
TEST(GemmPanelsOfHopper, HaveTheResultsOfRows) {
  const DeviceInfo hopper = hopper_of(2);
  std::mt19937_64 random(5);
  int checked = 0;
  for (const char* key :
       {"gemm dtype=bf16 out=bf16 layout=nt packing=panels m=70 n=144 k=328",
        "gemm dtype=f16 out=f32 layout=nt epilogue=bias packing=panels m=13 n=208 k=520",
        "gemm dtype=f16 out=f16 layout=nt epilogue=residual,silu packing=panels m=200 "
        "n=80 k=64",
        "gemm dtype=bf16 out=f32 layout=nt packing=panels m=100 n=96 k=192 batch=2",
        "gemm dtype=bf16 out=f32 layout=nt shared=b packing=panels m=30 n=176 k=128 "
        "batch=3"}) {
    const Problem panels = catalog().read(key).value();
    Problem rows = panels;
    std::erase_if(rows.attributes, [](const auto& one) { return one.first == "packing"; });
    const Space space({gemm().variant("tma").space(gemm().shape(panels), hopper)});
    for (int drawn = 1; drawn <= 4; ++drawn) {
      const Config config = space.sample(random);
      SCOPED_TRACE(panels.key() + " | " + config.text());
      auto inputs = gemm().inputs(
          rows, 3, drawn % 2 == 0 ? kernels::InputStyle::plain : kernels::InputStyle::adversarial);
      std::vector<std::byte> results[2];
      for (const bool packed : {false, true}) {
        const Problem& problem = packed ? panels : rows;
        if (packed) inputs[1].data = kernels::panels_of_rows(inputs[1].data, 2 * rows.dim("k"));
        auto plan = gemm().plan(problem, hopper, config);
        ASSERT_TRUE(plan) << plan.failure().message;
        for (KernelSource& source : plan->sources) source.options.clear();  // those of NVRTC
        const auto done = run_plan(device("hip-host:0"), *plan, gemm().tensors(problem), inputs);
        ASSERT_TRUE(done) << done.failure().message << '\n' << done.failure().log;
        EXPECT_EQ(done->overrun, "");
        const Verdict verdict = gemm().reference(problem, inputs, 1)->check(done->outputs);
        EXPECT_TRUE(verdict.passed) << verdict.detail;
        results[packed ? 1 : 0] = done->outputs.at(0).data;
      }
      EXPECT_TRUE(results[0] == results[1]);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 20);
}

struct Case {
  const char* device;
  const char* name;
  const char* attributes;
  const char* extents;
  const char* config;
};
/// For GoogleTest's messages.
void PrintTo(const Case& value, std::ostream* out) {
  *out << value.name;
}

/// Whole steps and the rest of K, one of which may be missing; tiles past the edges; gates; slices.
std::vector<Case> direct_cases() {
  return {
      {"hip-host:1", "gfx942_few_rows", "dtype=bf16 out=bf16 layout=nt", "m=13 n=80 k=712",
       "matrix BM=16 BN=64 WM=16 WN=16 BK=128 INSTR=16 VA=8 VB=8 PAD=0 STAGES=2 ASYNC=0 "
       "FRAGMENTS=1 "
       "SWIZZLE=8 WALK=0 XCDS=8 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0 "
       "DIRECT=1"},
      {"hip-host:1", "gfx942_large_products", "dtype=f16 out=f32 layout=nt epilogue=bias",
       "m=70 n=160 k=344",
       "matrix BM=64 BN=128 WM=32 WN=64 BK=32 INSTR=32 VA=4 VB=8 PAD=1 STAGES=1 ASYNC=0 "
       "FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=8 SPLIT=2 FOLD=1 ALIGN=0 PRIORITY=1 INTERLEAVE=2 PINGPONG=0 "
       "DIRECT=1"},
      {"hip-host:1", "gfx942_copies_of_a", "dtype=f16 out=f16 layout=nt epilogue=swiglu",
       "m=40 n=48 k=264",
       "matrix BM=32 BN=64 WM=32 WN=32 BK=64 INSTR=16 VA=2 VB=8 PAD=0 STAGES=2 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 PRIORITY=0 INTERLEAVE=0 PINGPONG=0 "
       "DIRECT=1"},
      {"hip-host:2", "gfx1100_few_rows", "dtype=f16 out=f16 layout=nt epilogue=geglu",
       "m=13 n=80 k=376",
       "matrix BM=16 BN=64 WM=16 WN=16 BK=64 INSTR=16 VA=8 VB=8 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=8 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0 DIRECT=1"},
      {"hip-host:2", "gfx1100_slices", "dtype=bf16 out=f32 layout=nt", "m=50 n=96 k=1024",
       "matrix BM=64 BN=64 WM=64 WN=32 BK=32 INSTR=16 VA=8 VB=8 PAD=0 STAGES=1 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=4 FOLD=0 ALIGN=0 INTERLEAVE=1 DIRECT=1"},
      {"hip-host:3", "gfx1201_few_rows", "dtype=bf16 out=bf16 layout=nt shared=b",
       "m=13 n=80 k=384 batch=2",
       "matrix BM=16 BN=64 WM=16 WN=16 BK=64 INSTR=16 VA=8 VB=8 PAD=0 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=8 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=4 DIRECT=1"},
      {"hip-host:3", "gfx1201_columns", "dtype=f16 out=f16 layout=nt epilogue=residual",
       "m=66 n=208 k=168",
       "matrix BM=64 BN=128 WM=64 WN=64 BK=32 INSTR=16 VA=8 VB=8 PAD=0 STAGES=2 ASYNC=0 "
       "FRAGMENTS=1 "
       "SWIZZLE=8 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0 INTERLEAVE=0 DIRECT=1"},
  };
}

class GemmDirect : public ::testing::TestWithParam<Case> {};

TEST_P(GemmDirect, HasTheResultsOfSharedMemory) {
  const Case& of = GetParam();
  Device& on = device(of.device);
  const Problem panels = problem_of(std::string(of.attributes) + " packing=panels", of.extents);
  const auto config = gemm().space(panels, on.info()).parse(of.config);
  ASSERT_TRUE(config) << config.failure().message;
  for (const auto style : {kernels::InputStyle::plain, kernels::InputStyle::adversarial}) {
    expect_equal(of.attributes, of.extents, *config, on, style, 7);
  }
  Config through = *config;
  through.value("DIRECT") = 0;
  if (through["ASYNC"] == 1) through.value("VB") = through["VA"];
  const auto shared = gemm().space(panels, on.info()).parse(through.text());
  ASSERT_TRUE(shared) << shared.failure().message;
  const auto inputs = gemm().inputs(panels, 9, kernels::InputStyle::plain);
  EXPECT_TRUE(product(panels, *config, inputs, on) == product(panels, *shared, inputs, on));
}

INSTANTIATE_TEST_SUITE_P(Ways, GemmDirect, ::testing::ValuesIn(direct_cases()),
                         [](const auto& instance) { return instance.param.name; });

/// As AITER's shuffle_weight writes it: 16 rows x 16 bytes, then the next 16 bytes of these rows.
TEST(GemmPanelsOfBytes, HaveUnitsOfSixteenRows) {
  constexpr std::int64_t rows = 32, bytes = 48;
  std::vector<std::byte> numbers(rows * bytes);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::byte>(i * 37 >> 2);
  const auto panels = kernels::panels_of_rows(numbers, bytes);
  std::size_t at = 0;
  for (std::int64_t panel = 0; panel < rows / 16; ++panel) {
    for (std::int64_t unit = 0; unit < bytes / 16; ++unit) {
      for (std::int64_t row = 0; row < 16; ++row) {
        for (std::int64_t byte = 0; byte < 16; ++byte, ++at) {
          const std::int64_t from = (panel * 16 + row) * bytes + unit * 16 + byte;
          ASSERT_EQ(panels[at], numbers[static_cast<std::size_t>(from)]) << at;
          ASSERT_EQ(kernels::panel_place(panel * 16 + row, unit * 16 + byte, bytes),
                    static_cast<std::int64_t>(at));
        }
      }
    }
  }
  EXPECT_EQ(kernels::rows_of_panels(panels, bytes), numbers);
}

Result<Problem> wanted(std::vector<std::pair<std::string, std::string>> more,
                       const char* dtype = "f16") {
  std::vector<std::pair<std::string, std::string>> values{
      {"m", "12"}, {"n", "32"}, {"k", "40"}, {"layout", "nt"}, {"packing", "panels"}};
  for (auto& [name, value] : more) {
    const auto known = std::find_if(values.begin(), values.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (known != values.end()) {
      known->second = value;
    } else {
      values.emplace_back(name, value);
    }
  }
  return kernels::make_problem(gemm(), {std::move(values), dtype, ""});
}

TEST(GemmPanelsProblem, RowsAreNotInKeys) {
  EXPECT_EQ(wanted({})->key(), "gemm dtype=f16 out=f16 layout=nt packing=panels m=12 n=32 k=40");
  EXPECT_EQ(wanted({{"packing", "rows"}})->key(),
            "gemm dtype=f16 out=f16 layout=nt m=12 n=32 k=40");
}

TEST(GemmPanelsProblem, NeedsWholePanels) {
  const auto refused = [](std::vector<std::pair<std::string, std::string>> more,
                          const char* dtype = "f16") {
    const auto problem = wanted(std::move(more), dtype);
    return problem ? std::string() : problem.failure().message;
  };
  EXPECT_EQ(refused({}, "bf16"), "");
  EXPECT_EQ(refused({{"epilogue", "swiglu"}}), "");
  EXPECT_EQ(refused({{"batch", "2"}, {"b_batch_stride", "1288"}, {"b_offset", "8"}}), "");
  const auto expect = [&](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect(refused({}, "f32"), "needs dtype f16 or bf16");
  for (const char* layout : {"nn", "tn", "tt"}) {
    expect(refused({{"layout", layout}}), "needs layout nt");
  }
  expect(refused({{"n", "24"}}), "needs n of a multiple of 16");
  expect(refused({{"k", "44"}}), "needs k of a multiple of 8");
  expect(refused({{"ldb", "48"}}), "needs packed rows, without ldb");
  expect(refused({{"b_offset", "4"}}), "needs b_offset and b_batch_stride of multiples of 8");
  expect(refused({{"batch", "2"}, {"b_batch_stride", "1284"}}),
         "needs b_offset and b_batch_stride of multiples of 8");
  expect(refused({{"order", "column"}, {"layout", "tn"}}), "needs row-major matrices");
}

/// Few rows are loaded to registers directly by default, and by no variant with rows of B alone.
TEST(GemmPanelsDefault, LoadsFragmentsOfFewRows) {
  const Problem few =
      problem_of("dtype=bf16 out=bf16 layout=nt packing=panels", "m=16 n=4096 k=4096");
  const Problem many =
      problem_of("dtype=bf16 out=bf16 layout=nt packing=panels", "m=4096 n=4096 k=4096");
  for (const char* gpu : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}) {
    const DeviceInfo info = architecture_info(gpu).value();
    const Config of_few = gemm().default_config(few, info);
    ASSERT_EQ(of_few.variant, "matrix") << gpu;
    EXPECT_EQ(of_few["DIRECT"], 1) << gpu;
    EXPECT_EQ(of_few["WM"], of_few["BM"]) << gpu;
    const Config of_many = gemm().default_config(many, info);
    ASSERT_EQ(of_many.variant, "matrix") << gpu;
    EXPECT_EQ(of_many["DIRECT"], 0) << gpu;
  }
  for (const char* gpu : {"sm_80", "sm_90"}) {
    EXPECT_EQ(gemm().default_config(many, architecture_info(gpu).value()).variant, "matrix") << gpu;
  }
}

}  // namespace
}  // namespace greta::test::gemm_panels_test
