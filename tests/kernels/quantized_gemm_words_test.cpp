// Protects: gemv whose neighbouring threads have neighbouring words of AWQ and GPTQ, on each
// device: each packing, words of 4 and 8 bits, zero points, types, epilogues and norms, loads of
// one to four words, columns past the last one, and workgroups that share k, which leave their
// counters as they were. Where this is the default, and which configurations are refused.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/filled.hpp"
#include "tests/kernels/hopper_runner.hpp"

namespace greta::test::quantized_gemm_words_test {
namespace {

struct Case {
  const char* key;
  const char* config;
};

constexpr Case cases[] = {
    {"packing=awq zeros=groups m=1 n=512 k=1024",
     "THREADS=128 COLS=8 TN=8 ROWS=1 UNROLL=1 ACROSS=1 SPLIT=4"},
    {"packing=awq group=\"32\" epilogue=residual m=3 n=80 k=384",
     "THREADS=64 COLS=2 TN=16 ROWS=4 UNROLL=1 ACROSS=1 SPLIT=1"},
    {"packing=awq zeros=groups epilogue=swiglu m=5 n=40 k=512",
     "THREADS=32 COLS=4 TN=16 ROWS=4 UNROLL=1 ACROSS=1 SPLIT=2"},
    {"packing=awq epilogue=bias prologue=rmsnorm m=8 n=72 k=512",
     "THREADS=64 COLS=4 TN=8 ROWS=8 UNROLL=2 ACROSS=1 SPLIT=2"},
    {"packing=gptq zeros=groups m=1 n=200 k=1280",
     "THREADS=256 COLS=32 TN=1 ROWS=1 UNROLL=2 ACROSS=1 SPLIT=8"},
    {"packing=gptq epilogue=bias m=4 n=72 k=384",
     "THREADS=64 COLS=16 TN=2 ROWS=4 UNROLL=1 ACROSS=1 SPLIT=1"},
    {"packing=gptq_v2 zeros=groups weights=int8 group=\"64\" m=2 n=136 k=384",
     "THREADS=128 COLS=8 TN=4 ROWS=2 UNROLL=1 ACROSS=1 SPLIT=4"},
    {"packing=gptq zeros=groups weights=int8 epilogue=swiglu prologue=rmsnorm m=7 n=44 k=256",
     "THREADS=32 COLS=2 TN=8 ROWS=2 UNROLL=1 ACROSS=1 SPLIT=4"},
    {"packing=gptq_v2 epilogue=swiglu m=6 n=48 k=512",
     "THREADS=64 COLS=4 TN=16 ROWS=4 UNROLL=1 ACROSS=1 SPLIT=2"},
    {"packing=gptq zeros=groups m=1 n=24 k=128",
     "THREADS=32 COLS=32 TN=8 ROWS=1 UNROLL=1 ACROSS=1 SPLIT=1"},
};

constexpr std::pair<const char*, const char*> types[] = {
    {"f16", "f16"}, {"bf16", "bf16"}, {"f32", "f32"}, {"f16", "f32"}, {"bf16", "f32"}};

Problem problem_of(std::size_t index) {
  const auto& [in, out] = types[index % std::size(types)];
  return catalog()
      .read(fmt::format("quantized_gemm dtype={} out={} {}", in, out, cases[index].key))
      .value();
}

Result<Config> config_of(const Problem& problem, const DeviceInfo& device, std::string_view text) {
  return built_in(problem.op).space(problem, device).parse(fmt::format("gemv {}", text));
}

void expect_right_twice(const Problem& problem, const Config& config, Device& on,
                        kernels::InputStyle style, std::uint64_t seed) {
  SCOPED_TRACE(on.info().id() + " | " + problem.key() + " | " + config.text());
  const Operation& operation = built_in(problem.op);
  const auto inputs = operation.inputs(problem, seed, style);
  const auto plan = operation.plan(problem, on.info(), config);
  ASSERT_TRUE(plan) << plan.failure().message;
  const auto run = run_plan(on, *plan, operation.tensors(problem), inputs, 2);
  ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
  EXPECT_EQ(run->overrun, "");
  EXPECT_EQ(run->changed, "");
  const Verdict verdict = operation.reference(problem, inputs, seed)->check(run->outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

/// Returns C's first element where A is 2^-100, weights are 1, and scales are `scale`.
double first_element(Device& on, int m, int rows, double scale) {
  const Operation& operation = built_in("quantized_gemm");
  const Problem problem =
      catalog()
          .read(fmt::format("quantized_gemm dtype=bf16 out=f32 packing=gptq m={} n=64 k=128", m))
          .value();
  const auto specs = operation.tensors(problem);
  std::vector<HostTensor> inputs = operation.inputs(problem, 1);
  inputs[0] = filled(specs[0], std::vector<double>(specs[0].elements(), 0x1p-100));
  inputs[1] =
      filled(specs[1], std::vector<double>(specs[1].elements(), double{0x99999999 - 0x1p32}));
  inputs[2] = filled(specs[2], std::vector<double>(specs[2].elements(), scale));
  const auto config =
      config_of(problem, on.info(),
                fmt::format("THREADS=64 COLS=16 TN=2 ROWS={} UNROLL=1 ACROSS=1 SPLIT=1", rows));
  EXPECT_TRUE(config) << config.failure().message;
  const auto plan = operation.plan(problem, on.info(), *config).value();
  return run_plan(on, plan, specs, inputs, 1).value().outputs.back().at(0);
}

// A scale of bf16 times an integer may be more than f32 has, where the product with A is not.
TEST(QuantizedGemmWordsScales, OfBf16MayBeLarge) {
  Device& on = device("hip-host:0");
  const double one_row = first_element(on, 1, 1, 0x1p127);
  EXPECT_TRUE(std::isfinite(one_row));
  EXPECT_NE(one_row, 0);
  EXPECT_EQ(first_element(on, 4, 4, 0x1p127), one_row);
}

class QuantizedGemmWords : public ::testing::TestWithParam<std::string> {};

TEST_P(QuantizedGemmWords, AreRight) {
  Device& on = device(GetParam());
  std::size_t run = 0;
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const Problem problem = problem_of(i);
    const auto config = config_of(problem, on.info(), cases[i].config);
    // lavapipe's spaces have few rows and chunks.
    if (!config && on.info().language == Language::glsl) continue;
    ASSERT_TRUE(config) << problem.key() << ": " << config.failure().message;
    ++run;
    expect_right_twice(problem, *config, on, kernels::InputStyle::plain, i);
    expect_right_twice(problem, *config, on, kernels::InputStyle::adversarial, i + 100);
  }
  EXPECT_GE(run, 6U);
}

INSTANTIATE_TEST_SUITE_P(Devices, QuantizedGemmWords, ::testing::ValuesIn(usable_devices()),
                         [](const auto& info) { return device_name(info.param); });

/// Each thread of GPTQ's words then loads 16 bytes, and no nibble of AWQ is loaded twice.
TEST(QuantizedGemmWordsDefaults, AreAlongNOnGpus) {
  const Operation& operation = built_in("quantized_gemm");
  for (const char* architecture : {"sm_90", "gfx90a", "gfx942", "gfx1100", "gfx1201"}) {
    const DeviceInfo gpu = architecture_info(architecture).value();
    for (const char* packing : {"awq", "gptq"}) {
      for (const int m : {1, 4, 8}) {
        const Problem problem =
            catalog()
                .read(fmt::format(
                    "quantized_gemm dtype=f16 out=f16 zeros=groups packing={} m={} n=4096 k=4096",
                    packing, m))
                .value();
        const Config config = operation.default_config(problem, gpu);
        SCOPED_TRACE(fmt::format("{} {} {}", architecture, problem.key(), config.text()));
        EXPECT_EQ(config.variant, "gemv");
        EXPECT_EQ(config["ACROSS"], 1);
        // Slices only where more than half of the compute units were idle without them, and k has a
        // chunk for each thread of another slice.
        const std::int64_t tiles = 4096 / (config["COLS"] * config["TN"]);
        const std::int64_t rounds = 4096 / 32 / (config["THREADS"] / config["COLS"]);
        EXPECT_TRUE(2 * tiles * config["SPLIT"] > gpu.compute_units ||
                    2 * config["SPLIT"] > rounds);
        if (config["SPLIT"] > 1) EXPECT_LE(tiles * config["SPLIT"], gpu.compute_units);
        EXPECT_GE(config["ROWS"], m);
      }
    }
  }
}

/// n of gates may be half a word of AWQ.
TEST(QuantizedGemmWordsDefaults, AreAlongKWhereWordsHaveGatesAndUps) {
  const Problem problem =
      catalog()
          .read("quantized_gemm dtype=f16 out=f16 packing=awq epilogue=swiglu m=1 n=44 k=256")
          .value();
  const DeviceInfo gpu = architecture_info("sm_90").value();
  const Config config = built_in("quantized_gemm").default_config(problem, gpu);
  EXPECT_EQ(config.variant, "gemv");
  EXPECT_EQ(config["ACROSS"], 0);
}

TEST(QuantizedGemmWordsSpace, NamesWhatIsRefused) {
  const DeviceInfo gpu = architecture_info("sm_90").value();
  const auto refused = [&](const char* attributes, const char* config) {
    const Problem problem =
        catalog().read(fmt::format("quantized_gemm dtype=f16 out=f16 {}", attributes)).value();
    const auto parsed = config_of(problem, gpu, config);
    return parsed ? std::string() : parsed.failure().message;
  };
  const char* const awq = "packing=awq m=1 n=4096 k=1024";
  const auto names = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  names(refused(awq, "THREADS=64 COLS=2 TN=4 ROWS=1 UNROLL=1 ACROSS=0 SPLIT=1"),
        "TN must be at most 2");
  names(refused(awq, "THREADS=64 COLS=2 TN=4 ROWS=1 UNROLL=1 ACROSS=1 SPLIT=1"),
        "TN must be at least 8");
  names(refused(awq, "THREADS=64 COLS=2 TN=2 ROWS=1 UNROLL=1 ACROSS=0 SPLIT=2"), "needs ACROSS=1");
  names(refused("packing=awq m=1 n=4096 k=128",
                "THREADS=32 COLS=32 TN=8 ROWS=1 UNROLL=1 ACROSS=1 SPLIT=8"),
        "must not exceed the 4 chunks");
  names(refused("packing=awq m=1 n=4104 k=128",
                "THREADS=32 COLS=32 TN=16 ROWS=1 UNROLL=1 ACROSS=1 SPLIT=1"),
        "TN must divide n, 4104");
  names(refused("m=1 n=4096 k=1024", "THREADS=64 COLS=2 TN=4 ROWS=1 UNROLL=1 ACROSS=1 SPLIT=1"),
        "ACROSS");
}

}  // namespace
}  // namespace greta::test::quantized_gemm_words_test
