// Protects: batches of gemm. Problems without a batch keep their keys, and every product of a batch
// reads its own matrices, which may be apart or common.

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/model/problem_rules.hpp"
#include "kernels/sampling/candidates.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::gemm_batch_test {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

const Operation& gemm() {
  return built_in("gemm");
}

Result<Problem> problem_with(Values more, const char* m = "12") {
  Values values{{"m", m}, {"n", "20"}, {"k", "16"}};
  values.insert(values.end(), more.begin(), more.end());
  return kernels::make_problem(gemm(), {std::move(values), "f32", ""});
}

TEST(GemmBatch, OfOneProductIsNotInKeys) {
  const std::string plain = "gemm dtype=f32 out=f32 m=12 n=20 k=16";
  EXPECT_EQ(problem_with({})->key(), plain);
  EXPECT_EQ(problem_with({{"batch", "1"}})->key(), plain);
  EXPECT_EQ(problem_with({{"batch", "3"}})->key(), plain + " batch=3");
  EXPECT_TRUE(catalog().read(plain));
  EXPECT_EQ(catalog().read(plain + " batch=3")->dim("batch"), 3);
  const auto given = catalog().read(plain + " batch=1");
  ASSERT_FALSE(given);
  EXPECT_NE(given.failure().message.find("must be absent"), std::string::npos);
  EXPECT_FALSE(problem_with({{"batch", "0"}}));
}

TEST(GemmBatch, IsRoundedInLookUps) {
  EXPECT_EQ(kernels::bucket(gemm(), *problem_with({{"batch", "5"}})).dim("batch"), 8);
  EXPECT_EQ(kernels::bucket(gemm(), *problem_with({})).dim("batch", 1), 1);
}

TEST(GemmBatch, ServesItselfWithWinnersOfOneProduct) {
  const Problem batch = *problem_with({{"batch", "5"}, {"a_batch_stride", "200"}});
  EXPECT_EQ(gemm().unfused(batch), *problem_with({}));
}

TEST(GemmBatch, IsWhatItsOptionsNeed) {
  for (const char* name : {"a_batch_stride", "b_batch_stride", "c_batch_stride"}) {
    const auto alone = problem_with({{name, "1000"}});
    ASSERT_FALSE(alone) << name;
    EXPECT_NE(alone.failure().message.find("needs batch"), std::string::npos);
    const auto overlapping = problem_with({{"batch", "2"}, {name, "100"}});
    ASSERT_FALSE(overlapping) << name;
    EXPECT_TRUE(problem_with({{"batch", "2"}, {name, "1000"}})) << name;
  }
  EXPECT_FALSE(problem_with({{"shared", "b"}}));
  // 12 rows of 16 elements: matrices one after the other, or side by side in rows of 40.
  const auto side_by_side = [](const char* step) {
    return static_cast<bool>(
        problem_with({{"batch", "2"}, {"lda", "40"}, {"a_batch_stride", step}}));
  };
  EXPECT_FALSE(side_by_side("15"));
  EXPECT_TRUE(side_by_side("16"));
  EXPECT_TRUE(side_by_side("24"));
  EXPECT_FALSE(side_by_side("25"));
  EXPECT_FALSE(side_by_side("455"));
  EXPECT_TRUE(side_by_side("456"));
  EXPECT_FALSE(problem_with({{"batch", "2"}, {"shared", "b"}, {"b_batch_stride", "1000"}}));
}

TEST(GemmBatch, StandsInForItselfWithAtLeastTwoProducts) {
  const Problem batch = *problem_with({{"batch", "100"}});
  EXPECT_EQ(gemm().stand_in(batch, 0.1).dim("batch"), 10);
  EXPECT_EQ(gemm().stand_in(batch, 0.001).dim("batch"), 2);
}

/// Where a batch's matrix is: the distance of rows, and of matrices.
struct Apart {
  std::int64_t row, matrix;
};

double element(const HostTensor& tensor, const Apart& apart, std::int64_t number, std::int64_t row,
               std::int64_t col) {
  return tensor.at(static_cast<std::size_t>(number * apart.matrix + row * apart.row + col));
}

std::int64_t said(const Values& values, const char* name, std::int64_t otherwise) {
  for (const auto& [known, value] : values) {
    if (known == name) return std::stoll(value);
  }
  return otherwise;
}

class GemmBatchRun : public ::testing::TestWithParam<std::string> {};

TEST_P(GemmBatchRun, MultipliesTheMatricesOfEachProduct) {
  Device& device = test::device(GetParam());
  const Values layouts[] = {
      {},
      {{"shared", "b"}},
      {{"a_batch_stride", "401"}},
      {{"b_batch_stride", "400"}, {"c_batch_stride", "500"}},
      {{"lda", "19"}, {"ldb", "21"}, {"b_batch_stride", "500"}, {"ldc", "24"}},
      {{"lda", "48"}, {"a_batch_stride", "16"}, {"ldc", "70"}, {"c_batch_stride", "25"}}};
  for (const char* rows : {"3", "12"}) {
    const std::int64_t m = std::stoll(rows), n = 20, k = 16;
    for (Values more : layouts) {
      const bool shared = !more.empty() && more[0].first == "shared";
      const std::int64_t lda = said(more, "lda", k), ldb = said(more, "ldb", n),
                         ldc = said(more, "ldc", n);
      const Apart a{lda, said(more, "a_batch_stride", m * lda)},
          b{ldb, shared ? 0 : said(more, "b_batch_stride", k * ldb)},
          c{ldc, said(more, "c_batch_stride", m * ldc)};
      more.emplace_back("batch", "3");
      const Problem problem = *problem_with(more, rows);
      const auto specs = gemm().tensors(problem);
      const auto inputs = gemm().inputs(problem, 7);
      for (const char* variant : {"gemv", "naive", "tiled"}) {
        for (const kernels::Candidate& candidate :
             kernels::sample_candidates(gemm(), problem, device.info(), variant, 2, 3)) {
          const auto plan = gemm().plan(problem, device.info(), candidate.config).value();
          const auto run = run_plan(device, plan, specs, inputs);
          ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
          EXPECT_EQ(run->overrun, "");
          for (std::int64_t at = 0; at < 3 * m * n; ++at) {
            const std::int64_t number = at / (m * n), row = at / n % m, col = at % n;
            double sum = 0;
            for (std::int64_t l = 0; l < k; ++l) {
              sum += element(inputs[0], a, number, row, l) * element(inputs[1], b, number, l, col);
            }
            ASSERT_NEAR(element(run->outputs[0], c, number, row, col), sum, 1e-5)
                << problem.key() << ": " << candidate.config.text() << ", " << at;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GemmBatchRun, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

}  // namespace
}  // namespace greta::test::gemm_batch_test
