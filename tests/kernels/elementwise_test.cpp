// Protects: elementwise kernels on every device: odd sizes, special values, and positions and ids
// outside their tables.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/filled.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::elementwise_test {
namespace {

class Elementwise : public ::testing::TestWithParam<std::string> {
 protected:
  /// Runs a problem's default on these inputs, in order, and checks the outputs.
  void expect_right(const std::string& key, const std::vector<std::vector<double>>& contents) {
    SCOPED_TRACE(key);
    const Problem problem = Problem::parse(key).value();
    const Operation& kernel = built_in(problem.op);
    std::vector<HostTensor> inputs;
    auto next = contents.begin();
    for (const TensorSpec& spec : kernel.tensors(problem)) {
      if (spec.role != Role::output) inputs.push_back(test::filled(spec, *next++));
    }
    const auto plan = kernel.plan(problem, info_, kernel.default_config(problem, info_)).value();
    const auto run = test::run_plan(device_, plan, kernel.tensors(problem), inputs).value();
    EXPECT_EQ(run.overrun, "");
    const Verdict verdict = kernel.reference(problem, inputs, 1)->check(run.outputs);
    EXPECT_TRUE(verdict.passed) << verdict.detail;
  }

  Device& device_ = test::device(GetParam());
  const DeviceInfo& info_ = device_.info();
};

// A vector of 8, then fewer than 8 elements, which are processed one by one.
TEST_P(Elementwise, TailsShorterThanAVectorAreWhole) {
  const auto run = [this](const std::string& op, std::int64_t cols, const char* config) {
    const Operation& kernel = built_in(op);
    const Problem problem{op, DType::f16, DType::f16, {}, {{"rows", 1}, {"cols", cols}}};
    const Config parsed = kernel.space(problem, info_).parse(config).value();
    test::expect_right(kernel, problem, kernel.plan(problem, info_, parsed), config, 3, device_);
  };
  for (const std::int64_t cols : {1, 7, 8, 15, 1023, 64 * 8 * 2 + 3}) {
    run("add", cols, "flat THREADS=64 VEC=8 ITEMS=2");
  }
  run("gelu", 13, "flat THREADS=64 VEC=4 ITEMS=1");
}

// A thread takes several heads of a token; those that are left over are fewer.
TEST_P(Elementwise, HeadsThatDoNotFillAThreadAreWhole) {
  const Operation& kernel = built_in("rope");
  for (const int heads : {3, 5, 7}) {
    const Problem problem = Problem::parse(fmt::format("rope dtype=f16 out=f16 tokens=3 heads={} "
                                                       "dim=8 positions=4",
                                                       heads))
                                .value();
    const char* const config = "heads THREADS=64 VEC=4 ITEMS=2";
    const Config parsed = kernel.space(problem, info_).parse(config).value();
    test::expect_right(kernel, problem, kernel.plan(problem, info_, parsed), config, 3, device_);
  }
}

TEST_P(Elementwise, InfinitiesNanAndTheLimitsOfTypes) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<double> a{inf,    -inf,  inf,     nan,      65504,
                              -65504, 65504, 0x1p-24, -0x1p-24, 0x1p-14};
  const std::vector<double> b{1, -1, -inf, 1, 65504, -32, -65504, 0x1p-24, 0x1p-24, -0x1p-24};
  for (const char* types : {"dtype=f16 out=f16", "dtype=f16 out=f32", "dtype=bf16 out=bf16"}) {
    expect_right(std::string("add ") + types + " rows=1 cols=10", {a, b});
  }
  const std::vector<double> x{inf, -inf, nan, 65504, -65504, -80, -88, -9.75, -12.5, 100, 1e-7, 0};
  const std::vector<double> one(12, 1);
  for (const char* types : {"dtype=f16 out=f16", "dtype=f32 out=f32", "dtype=bf16 out=f32"}) {
    expect_right(std::string("gelu ") + types + " rows=1 cols=12", {x});
    expect_right(std::string("gelu ") + types + " form=erf rows=1 cols=12", {x});
    expect_right(std::string("silu_mul ") + types + " rows=1 cols=12", {x, one});
  }
}

// Copies are exact: subnormals, which arithmetic may flush to zero, and infinities are preserved.
TEST_P(Elementwise, CopiesKeepSubnormalNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> half{0x1p-24, -0x1p-24, 0x1p-15, inf, -inf, 65504, 1023 * 0x1p-24, 0};
  const std::vector<double> full{0x1p-149, -0x1p-130, 0x1p-127, inf, -inf, 0x1.FFFFFEp127, 1, 0};
  const std::vector<double> brain{0x1p-133, -0x1p-130, 0x1p-127, inf, -inf, 0x1.FEp127, 1, 0};
  const auto row = [](const char* types, const std::string& rest) {
    return "embedding dtype=" + std::string(types) + rest + " tokens=2 vocabulary=1 dim=8";
  };
  expect_right(row("f16", " out=f16"), {{0, 0}, half});
  expect_right(row("f16", " out=f32"), {{0, 0}, half});
  expect_right(row("f32", " out=f32"), {{0, 0}, full});
  expect_right(row("bf16", " out=bf16"), {{0, 0}, brain});
}

TEST_P(Elementwise, PositionsAndIdsOutsideOfTheirTablesDoNoHarm) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8}, table{0.5, 0.25, 1, -1};
  const double lowest = std::numeric_limits<std::int32_t>::min();
  for (const char* style : {"", "style=half "}) {
    expect_right(
        "rope dtype=f16 out=f16 " + std::string(style) + "tokens=4 heads=1 dim=2 positions=2",
        {x, {2, -1, 1, lowest}, table});
  }
  expect_right("embedding dtype=f16 out=f16 tokens=5 vocabulary=2 dim=2",
               {{2, -1, 0, lowest, 1}, table});
  const std::vector<double> cache(12, 0.25);
  for (const double position : {3.0, 4.0, 6.0, 7.0, 2147483647.0, -1.0, -3.0, -4.0, lowest}) {
    expect_right("kv_update dtype=f32 out=f16 tokens=4 kv_heads=1 dim=2 capacity=6",
                 {x, x, {position}, cache, cache});
    const std::vector<double> norm{1, 0.5};
    expect_right(
        "rope_append dtype=f16 out=f16 norm=rms batch=1 tokens=4 heads=1 kv_heads=1 dim=2 "
        "positions=2 capacity=6",
        {x, x, x, norm, norm, {2, -1, 1, lowest}, table, {position}, cache, cache});
  }
}

TEST_P(Elementwise, TheTextRefusesBrokenParameters) {
  const Operation& kernel = built_in("rope");
  const Problem problem =
      Problem::parse("rope dtype=f32 out=f32 tokens=4 heads=2 dim=8 positions=4").value();
  const Config config =
      kernel.space(problem, info_).parse("heads THREADS=64 VEC=2 ITEMS=2").value();
  const auto plan = kernel.plan(problem, info_, config).value();
  const auto compile_with = [&](const std::string& from, const std::string& to) {
    KernelSource source = plan.sources[0];
    const auto at = source.text.find(from);
    if (at == std::string::npos) return std::string("no ") + from;
    source.text.replace(at, from.size(), to);
    const auto compiled = device_.compile(source);
    return compiled ? "compiled" : compiled.failure().log;
  };
  EXPECT_NE(compile_with("#define ITEMS ", "#define ITEM ").find("must be defined"),
            std::string::npos);
  EXPECT_NE(compile_with("#define VEC 2", "#define VEC 3").find("power of 2"), std::string::npos);
  EXPECT_NE(compile_with("#define VEC 2", "#define VEC 1").find("at least 2"), std::string::npos);
  EXPECT_NE(compile_with("#define ITEMS 2", "#define ITEMS 0").find("at least 1"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Devices, Elementwise, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

std::string refusal(const std::string& op,
                    const std::vector<std::pair<std::string, int>>& extents) {
  ProblemRequest request;
  for (const auto& [name, value] : extents)
    request.values.emplace_back(name, std::to_string(value));
  const auto problem = make_problem(built_in(op), request);
  return problem ? "made " + problem->key() : problem.failure().message;
}

TEST(ElementwiseProblem, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(refusal("rope", {{"tokens", 1}, {"heads", 2}, {"dim", 5}}),
            "dim 5: must be even, for pairs");
  EXPECT_EQ(refusal("rope", {{"tokens", 65536}, {"heads", 32768}, {"dim", 2}}),
            "heads 32768: tokens x heads must not exceed 2147483647");
  EXPECT_EQ(refusal("rope", {{"tokens", 1}, {"heads", 2}, {"dim", 4}}),
            "made rope dtype=f16 out=f16 tokens=1 heads=2 dim=4 positions=4096");
  EXPECT_EQ(refusal("kv_update", {{"tokens", 9}, {"kv_heads", 1}, {"dim", 4}, {"capacity", 8}}),
            "capacity 8: must be at least the 9 tokens");
  EXPECT_EQ(
      refusal("kv_update", {{"tokens", 1}, {"kv_heads", 65536}, {"dim", 4}, {"capacity", 1 << 30}}),
      "capacity 1073741824: capacity x kv_heads must not exceed 2147483647");
  const auto append = [](int capacity, int heads, int dim) {
    return refusal(
        "rope_append",
        {{"tokens", 9}, {"heads", heads}, {"dim", dim}, {"positions", 9}, {"capacity", capacity}});
  };
  EXPECT_EQ(append(9, 1, 5), "dim 5: must be even, for pairs");
  EXPECT_EQ(append(8, 1, 4), "capacity 8: must be at least the 9 tokens");
  EXPECT_EQ(append(9, 1 << 27, 4),
            "heads 134217728: batch x tokens x (heads + 2 kv_heads) must not exceed 2147483647");
  EXPECT_EQ(append(9, 2, 4),
            "made rope_append dtype=f16 out=f16 batch=1 tokens=9 heads=2 kv_heads=2 dim=4 "
            "positions=9 capacity=9");
  const Problem without = Problem::parse(
                              "rope_append dtype=f16 out=f16 epsilon=0.25 batch=1 tokens=1 "
                              "heads=1 kv_heads=1 dim=2 positions=1 capacity=1")
                              .value();
  EXPECT_EQ(check_problem(built_in("rope_append"), without).failure().message,
            "epsilon 0.25: needs norm=rms");
  EXPECT_EQ(refusal("add", {{"rows", 0}, {"cols", 1}}),
            "rows 0: must be a whole number between 1 and 2147483647");
}

// More than 2^31 elements, which exceed the grid's first dimension: the grid is folded and covers
// all.
TEST(ElementwisePlan, HugeProblemsHaveAllTheirWorkgroups) {
  const Operation& kernel = built_in("add");
  const DeviceInfo device = architecture_info("gfx942").value();
  const Problem problem = Problem::parse("add dtype=f16 out=f16 rows=4000000 cols=70001").value();
  const Config config =
      kernel.space(problem, device).parse("flat THREADS=256 VEC=8 ITEMS=1").value();
  const auto plan = kernel.plan(problem, device, config).value();
  const auto [x, y, z] = plan.launches[0].grid;
  const std::uint64_t vectors = (4000000ULL * 70001 + 7) / 8;
  EXPECT_GT(y, 1U);
  EXPECT_GE(std::uint64_t{x} * y * 256, vectors);
  EXPECT_LT(std::uint64_t{x} * (y - 1) * 256, vectors);
  const Config tiny{"flat", {{"THREADS", 64}, {"VEC", 1}, {"ITEMS", 1}}};
  const auto refused = kernel.plan(problem, device, tiny);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().message.substr(0, 5), "grid:") << refused.failure().message;
}

TEST(ElementwiseSpace, ConstraintsSayWhy) {
  const DeviceInfo device = architecture_info("gfx942").value();
  const auto why = [&](const char* key, const Config& config) {
    const Problem problem = Problem::parse(key).value();
    return built_in(problem.op).space(problem, device).rejects(config).value_or("");
  };
  const auto config = [](const char* variant, int threads, int vec, int items) {
    return Config{variant, {{"THREADS", threads}, {"VEC", vec}, {"ITEMS", items}}};
  };
  const char* rope = "rope dtype=f16 out=f16 tokens=4 heads=2 dim=12 positions=4";
  EXPECT_EQ(why(rope, config("heads", 64, 8, 1)), "alignment: VEC must divide dim, which is 12");
  EXPECT_EQ(why(rope, config("heads", 64, 1, 1)), "pairs: VEC must be at least 2");
  EXPECT_EQ(why(rope, config("heads", 64, 4, 4)),
            "items: ITEMS must not exceed heads, which are 2");
  EXPECT_EQ(why("silu_mul dtype=f16 out=f16 layout=packed rows=4 cols=7", config("flat", 64, 2, 1)),
            "alignment: VEC must divide cols, which is 7");
  EXPECT_EQ(why("silu_mul dtype=f16 out=f16 rows=4 cols=7", config("flat", 64, 2, 1)), "");
}

}  // namespace
}  // namespace greta::test::elementwise_test
