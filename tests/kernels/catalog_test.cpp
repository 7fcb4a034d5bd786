// Protects: catalog entries are complete, their template keys cover exactly the included files, and
// their defaults are correct.

#include "tests/catalog.hpp"

#include <gtest/gtest.h>

#include <set>

#include "kernels/model/problem_rules.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::catalog_test {
namespace {

std::optional<std::string> even_digit(const std::string& text) {
  if (text == "2.0") return "2";
  return text == "0" || text == "2" ? std::optional(text) : std::nullopt;
}

Result<void> accept(const Problem& problem) {
  if (problem.dim("n") != 13) return {};
  return bad_field("n", "13", "brings bad luck");
}

Operation toy() {
  Operation kernel;
  kernel.name = "toy";
  kernel.dimensions = {{"m", "rows"}, {"n", "columns"}};
  kernel.attributes = {{"layout", "", "nn", {"nn", "nt", "tn"}, "", nullptr, {}},
                       {"beta", "", "0", {}, "an even digit", even_digit, {}}};
  kernel.dtypes = {{DType::f32, DType::f32}, {DType::f16, DType::f16}, {DType::f16, DType::f32}};
  kernel.check = accept;
  return kernel;
}

std::string message(ProblemRequest request) {
  const auto problem = make_problem(toy(), request);
  return problem ? "made " + problem->key() : problem.failure().message;
}

TEST(Catalog, EveryEntryIsCompleteAndFoundByName) {
  std::set<std::string> names;
  for (const Operation& entry : catalog()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(catalog().find(entry.name), &entry);
    EXPECT_FALSE(entry.summary.empty());
    EXPECT_FALSE(entry.dimensions.empty());
    EXPECT_FALSE(entry.dtypes.empty());
    for (const Attribute& attribute : entry.attributes) {
      EXPECT_TRUE(!attribute.allowed.empty() || attribute.canonical != nullptr) << attribute.name;
      EXPECT_TRUE(!attribute.allowed.empty() || !attribute.allowed_text.empty()) << attribute.name;
      EXPECT_NE(attribute.allowed.empty(), attribute.examples.empty() && !attribute.packed)
          << attribute.name;
      for (const std::string& example : attribute.examples) {
        EXPECT_EQ(attribute.canonical(example), example) << attribute.name;
      }
    }
    for (const Dimension& dimension : entry.dimensions) {
      for (const std::int64_t example : dimension.examples) {
        EXPECT_TRUE(dimension.least <= example && example <= dimension.most) << dimension.name;
      }
    }
    EXPECT_FALSE(entry.sizes.empty());
    const std::size_t all = entry.dimensions.size();
    for (const auto& size : entry.sizes) {
      EXPECT_LE(size.extents.size(), all);
      EXPECT_GE(size.extents.size() + (entry.dimensions.back().optional ? 1 : 0), all);
    }
    EXPECT_FALSE(entry.bound.empty());
    EXPECT_FALSE(entry.variants.empty());
    for (const Variant& variant : entry.variants) {
      EXPECT_FALSE(variant.summary.empty());
      if (!variant.judges.empty()) EXPECT_NO_THROW((void)entry.variant(variant.judges));
    }
    EXPECT_TRUE(entry.work && entry.tensors && entry.reference && entry.stand_in);
    EXPECT_EQ(entry.key().size(), 32U);
  }
  EXPECT_EQ(catalog().find("absent"), nullptr);
}

// Changes of files that an operation's kernels don't include must not make its stored results
// stale.
TEST(Catalog, KeysAreOfWhatKernelsInclude) {
  const auto gemm = built_in("gemm").sources(), softmax = built_in("softmax").sources();
  for (const char* const file : {"gemm/gemv.comp", "gemm/operands.hip", "common/matrix.hip",
                                 "common/types.hip", "common/memory.glsl"}) {
    EXPECT_TRUE(gemm.contains(file)) << file;
  }
  EXPECT_TRUE(softmax.contains("softmax/rows.hip"));
  EXPECT_TRUE(softmax.contains("common/device.hip"));  // through common/rows.hip
  EXPECT_FALSE(softmax.contains("common/matrix.hip"));
  EXPECT_FALSE(softmax.contains("gemm/gemv.comp"));
}

/// Returns a problem whose extents are the dimensions' first, or last, examples, or `extent`.
Problem small_problem(const Operation& entry, const DTypes& types, std::int64_t extent) {
  Problem problem{entry.name, types.in, types.out, {}, {}};
  for (const Dimension& dimension : entry.dimensions) {
    const auto& examples = dimension.examples;
    const std::int64_t chosen = examples.empty() ? extent
                                : extent == 1    ? examples.front()
                                                 : examples.back();
    problem.dims.emplace_back(dimension.name, chosen);
  }
  return problem;
}

/// A problem's key omits attributes with their default value, so stating the default must have no
/// effect.
TEST(Catalog, AttributesDefaultToWhatTheirFallbackSays) {
  const DeviceInfo& device = test::device().info();
  for (const Operation& entry : catalog()) {
    const Problem silent = small_problem(entry, entry.dtypes.front(), 40);
    const Config config = entry.default_config(silent, device);
    const auto plan = entry.plan(silent, device, config).value();
    for (const Attribute& attribute : entry.attributes) {
      Problem said = silent;
      said.attributes = {{attribute.name, default_value(attribute, silent)}};
      EXPECT_EQ(entry.tensors(said), entry.tensors(silent)) << said.key();
      EXPECT_EQ(entry.work(said).flops, entry.work(silent).flops) << said.key();
      const auto same = entry.plan(said, device, config).value();
      ASSERT_EQ(same.sources.size(), plan.sources.size()) << said.key();
      for (std::size_t i = 0; i < plan.sources.size(); ++i) {
        EXPECT_EQ(same.sources[i].text, plan.sources[i].text) << said.key();
      }
      ASSERT_EQ(same.launches.size(), plan.launches.size()) << said.key();
      for (std::size_t i = 0; i < plan.launches.size(); ++i) {
        EXPECT_EQ(same.launches[i].arguments, plan.launches[i].arguments) << said.key();
      }
    }
  }
}

/// Checks defaults at the smallest size and at another one, of the first types, and of the others
/// at one of them in turn; property_test.cpp samples the spaces.
TEST(Catalog, EveryDefaultIsRightOnThisDevice) {
  const DeviceInfo& device = test::device().info();
  for (const Operation& entry : catalog()) {
    for (std::size_t i = 0; i < entry.dtypes.size(); ++i) {
      for (const std::int64_t extent : {1, 40}) {
        if (i > 0 && (i % 2 == 0) != (extent == 1)) continue;
        const DTypes& types = entry.dtypes[i];
        const Problem problem = small_problem(entry, types, extent);
        ASSERT_TRUE(check_problem(entry, problem)) << problem.key();
        const Config config = entry.default_config(problem, device);
        test::expect_right(entry, problem, entry.plan(problem, device, config), config.text());
      }
    }
  }
}

TEST(MakeProblem, FillsDefaultsAndKeepsTheTemplatesOrder) {
  EXPECT_EQ(message({{{"n", "2"}, {"m", "1"}}, "", ""}), "made toy dtype=f32 out=f32 m=1 n=2");
  EXPECT_EQ(message({{{"n", "2"}, {"beta", "2"}, {"layout", "tn"}, {"m", "1"}}, "f16", ""}),
            "made toy dtype=f16 out=f16 layout=tn beta=\"2\" m=1 n=2");
  EXPECT_EQ(message({{{"m", "2147483647"}, {"n", "2"}, {"layout", "nn"}}, "f16", "f32"}),
            "made toy dtype=f16 out=f32 m=2147483647 n=2");
}

TEST(MakeProblem, NamesOptionValueAndWhatIsAllowed) {
  for (const std::string bad : {"0", "-1", "1e20", "2147483648", "99999999999999999999", "abc",
                                "4096.0", " 1", "1 ", "+1", "0x10"}) {
    EXPECT_EQ(message({{{"m", bad}, {"n", "1"}}, "", ""}),
              "m " + bad + ": must be a whole number between 1 and 2147483647");
  }
  EXPECT_EQ(message({{{"m", ""}, {"n", "1"}}, "", ""}),
            "m \"\": must be a whole number between 1 and 2147483647");
  EXPECT_EQ(message({{{"m", "1"}}, "", ""}), "n is missing");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "1"}, {"m", "2"}}, "", ""}), "m is given twice");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "1"}, {"k", "7"}}, "", ""}),
            "k 7: toy has no such field; it has m, n, layout, beta");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "1"}}, "f8", ""}), "dtype f8: must be f32 or f16");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "1"}}, "bf16", ""}), "dtype bf16: must be f32 or f16");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "1"}}, "f32", "f16"}),
            "out f16: must be f32 for f32 inputs");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "1"}}, "f16", "f64"}),
            "out f64: must be f16 or f32 for f16 inputs");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "1"}, {"layout", "tt"}}, "", ""}),
            "layout tt: must be nn, nt or tn");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "2"}, {"beta", "2.0"}}, "", ""}),
            "made toy dtype=f32 out=f32 beta=\"2\" m=1 n=2");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "1"}, {"beta", "1"}}, "", ""}),
            "beta 1: must be an even digit");
  EXPECT_EQ(message({{{"m", "1"}, {"n", "13"}}, "", ""}), "n 13: brings bad luck");
}

TEST(CheckProblem, JudgesWhatNoOptionMade) {
  const auto why = [](const Problem& problem) {
    const auto checked = check_problem(toy(), problem);
    return checked ? "good" : checked.failure().message;
  };
  const auto f32 = DType::f32, f16 = DType::f16;
  EXPECT_EQ(why({"toy", f16, f32, {{"layout", "tn"}}, {{"m", 1}, {"n", 2}}}), "good");
  EXPECT_EQ(why({"gemm", f32, f32, {}, {{"m", 1}, {"n", 2}}}),
            "gemm dtype=f32 out=f32 m=1 n=2: the operation is not toy");
  EXPECT_EQ(why({"toy", f32, f32, {}, {{"n", 2}, {"m", 1}}}),
            "toy dtype=f32 out=f32 n=2 m=1: the dimensions of toy are m, n");
  EXPECT_EQ(why({"toy", f32, f32, {{"colour", "red"}}, {{"m", 1}, {"n", 2}}}),
            "toy dtype=f32 out=f32 colour=red m=1 n=2: toy has no attribute colour");
  EXPECT_EQ(why({"toy", f32, f32, {{"beta", "1"}}, {{"m", 1}, {"n", 2}}}),
            "beta 1: must be an even digit");
  EXPECT_EQ(why({"toy", f32, f16, {}, {{"m", 1}, {"n", 2}}}),
            "out f16: must be f32 for f32 inputs");
  EXPECT_EQ(why({"toy", f32, f32, {}, {{"m", 0}, {"n", 2}}}),
            "m 0: must be a whole number between 1 and 2147483647");
  EXPECT_EQ(why({"toy", f32, f32, {}, {{"m", 1}, {"n", 13}}}), "n 13: brings bad luck");
}

}  // namespace
}  // namespace greta::test::catalog_test
