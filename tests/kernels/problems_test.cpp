// Protects: problems in earlier spellings can be read, and operations created at run time work like
// built-in ones.
#include <gtest/gtest.h>

#include "kernels/model/problem_rules.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::problems_test {
namespace {

TEST(EarlierSpelling, OfProblemsIsRead) {
  const auto read = [](const char* key) { return catalog().read(key).value().key(); };
  EXPECT_EQ(read("attention dtype=f16 out=f16 scale=0.5 batch=1 heads=2 kv_heads=2 q=4 kv=8 dim=8 "
                 "causal=1"),
            "attention dtype=f16 out=f16 mask=causal scale=0.5 batch=1 heads=2 kv_heads=2 q=4 kv=8 "
            "dim=8");
  EXPECT_EQ(read("attention dtype=f16 out=f16 batch=1 heads=2 kv_heads=2 q=4 kv=8 dim=8 causal=0"),
            "attention dtype=f16 out=f16 batch=1 heads=2 kv_heads=2 q=4 kv=8 dim=8");
  EXPECT_EQ(read("rope dtype=f32 out=f32 style=half output=in_place tokens=1 heads=1 dim=8 "
                 "positions=4"),
            "rope dtype=f32 out=f32 style=half place=in tokens=1 heads=1 dim=8 positions=4");
  const auto made = make_problem(
      built_in("attention"), {{{"heads", "2"}, {"q", "4"}, {"dim", "8"}, {"causal", "1"}}, "", ""});
  ASSERT_TRUE(made) << made.failure().message;
  EXPECT_EQ(made->attribute("mask", "none"), "causal");
}

// A causal and a non-causal problem have no distance, since they differ in more than dimensions.
TEST(EarlierSpelling, IsRefusedWhereItMeansNothing) {
  EXPECT_EQ(catalog().read("fft dtype=f32 out=f32 n=8").failure().field->field, "op");
  const auto twice = make_problem(
      built_in("attention"),
      {{{"heads", "2"}, {"q", "4"}, {"dim", "8"}, {"causal", "1"}, {"mask", "none"}}, "", ""});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.failure().field->field, "mask");
}

TEST(CatalogOfOnesOwn, HasOperationsMadeAtRunTime) {
  Operation doubled = built_in("add");
  const std::string name = "add_" + std::to_string(2);  // known at run time only
  doubled.name = name;
  doubled.work = [factor = 2.0](const Problem& problem) {
    Work work = built_in("add").work({"add", problem.dtype, problem.out_dtype, {}, problem.dims});
    work.flops *= factor;
    return work;
  };
  const Catalog own({built_in("gemm"), std::move(doubled)});
  EXPECT_EQ(own.size(), 2U);
  EXPECT_EQ(own.find("softmax"), nullptr);
  EXPECT_THROW(static_cast<void>(own.at("softmax")), Error);
  const Problem problem = own.read(name + " dtype=f32 out=f32 rows=3 cols=5").value();
  EXPECT_EQ(own.at(name).work(problem).flops, 30);
  const Config config = own.at(name).default_config(problem, test::device().info());
  EXPECT_TRUE(own.valid(problem, test::device().info(), config));
  EXPECT_FALSE(catalog().valid(problem, test::device().info(), config));
  EXPECT_THROW(Catalog({built_in("gemm"), built_in("gemm")}), Error);
}

}  // namespace
}  // namespace greta::test::problems_test
