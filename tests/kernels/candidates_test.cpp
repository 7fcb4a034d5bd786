// Protects: random candidates cover all types, attributes and variants of an operation and are
// valid, and samples of a space are distinct.

#include "kernels/sampling/candidates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "kernels/sampling/random_problem.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"

namespace greta::test::candidates_test {
namespace {

DeviceInfo device(const char* architecture) {
  return architecture_info(architecture).value();
}

std::string text(const Candidate& choice) {
  return choice.problem.key() + " | " + choice.config.text();
}

TEST(RandomChoices, MeetEachInstructionOfAVariant) {
  std::map<int, int> met;
  for (const auto& [problem, config] :
       random_candidates(built_in("gemm"), device("sm_90"), "matrix", 24, 1)) {
    ++met[config["INSTR"]];
  }
  EXPECT_EQ(met.size(), 2U);
  for (const auto& [instruction, count] : met) EXPECT_GE(count, 10) << "INSTR=" << instruction;
}

TEST(RandomChoices, ReachEveryVariantTypeAndAttribute) {
  for (const Operation& operation : catalog()) {
    SCOPED_TRACE(operation.name);
    const auto choices = random_candidates(operation, device("sm_90"), "", 160, 1);
    ASSERT_EQ(choices.size(), 160U);
    std::map<std::string, std::set<std::string>> seen;
    for (const auto& [problem, config] : choices) {
      ASSERT_TRUE(check_problem(operation, problem)) << problem.key();
      EXPECT_TRUE(operation.space(problem, device("sm_90")).valid(config)) << config.text();
      seen["variant"].insert(config.variant);
      seen["types"].insert(std::string(to_string(problem.dtype)) +
                           std::string(to_string(problem.out_dtype)));
      for (const Attribute& attribute : operation.attributes) {
        seen[attribute.name].insert(problem.attribute(attribute.name, attribute.fallback));
      }
    }
    EXPECT_EQ(seen["types"].size(), operation.dtypes.size());
    const auto space = operation.space(choices.front().problem, device("sm_90"));
    EXPECT_EQ(seen["variant"].size(), space.alternatives().size());
    for (const Attribute& attribute : operation.attributes) {
      if (attribute.packed != nullptr) {
        EXPECT_GT(seen[attribute.name].size(), 2U) << attribute.name;
        continue;
      }
      EXPECT_EQ(seen[attribute.name].size(),
                std::max(attribute.allowed.size(), attribute.examples.size()))
          << attribute.name;
    }
  }
}

/// A window of few keys allows many of them with little work, but the reference computes all
/// scores.
TEST(RandomChoices, AreSmallEnoughToCheckEveryElement) {
  const Operation& operation = built_in("attention");
  for (const auto& [problem, config] :
       random_candidates(operation, device("gfx942"), "matrix", 100, 909)) {
    EXPECT_TRUE(operation.fully_checked(problem)) << problem.key();
  }
}

/// Kernels for whole vectors take no others.
TEST(RandomProblems, AreOftenOfWholeVectors) {
  const Operation& gemm = built_in("gemm");
  std::mt19937_64 random(1);
  int even = 0;
  for (int i = 0; i < 800; ++i) {
    const Problem problem = random_problem(gemm, gemm.dtypes.front(), {}, {}, random);
    const bool whole = std::all_of(problem.dims.begin(), problem.dims.end(),
                                   [](const auto& dim) { return dim.second % 8 == 0; });
    even += whole && problem.attributes.empty();
  }
  EXPECT_GT(even, 60);
}

/// The remainder after a loop's rounds of four blocks has code of its own. Rows of weights in
/// blocks of 32 are no extents of arbitrary length.
TEST(RandomChoices, OfBlocksLeaveEveryRemainderOfFour) {
  std::set<std::int64_t> remainders;
  for (const auto& [problem, config] :
       random_candidates(built_in("experts"), device("gfx942"), "quantized", 60, 1)) {
    for (const char* name : {"dim", "hidden"}) {
      const std::int64_t blocks = problem.dim(name) / 32;
      if (blocks > 4) remainders.insert(blocks % 4);
    }
  }
  EXPECT_EQ(remainders.size(), 4U);
}

// Gates need layout nt for more than a few rows, no beta and no batch.
TEST(RandomChoices, MeetValuesThatAreSeldomValid) {
  const auto choices = random_candidates(built_in("gemm"), device("sm_90"), "tma", 150, 1);
  const auto gated = std::count_if(choices.begin(), choices.end(), [](const Candidate& choice) {
    return choice.problem.attribute("epilogue", "none").find("glu") != std::string::npos;
  });
  EXPECT_GE(gated, 10);  // 12 to 18 of six seeds
}

TEST(RandomChoices, CombineOptions) {
  std::set<std::string> pairs;
  for (const auto& [problem, config] :
       random_candidates(built_in("gemm"), device("sm_90"), "matrix", 100, 1)) {
    if (config["FOLD"] == 2) pairs.insert(problem.attribute("epilogue", "none"));
  }
  EXPECT_GE(pairs.size(), 8U) << "epilogues of slices that a cluster adds";
}

TEST(RandomChoices, AreThoseOfTheSeed) {
  const Operation& gemm = built_in("gemm");
  const auto first = random_candidates(gemm, device("gfx1100"), "", 5, 7);
  const auto again = random_candidates(gemm, device("gfx1100"), "", 5, 7);
  const auto other = random_candidates(gemm, device("gfx1100"), "", 5, 8);
  ASSERT_EQ(first.size(), 5U);
  ASSERT_EQ(again.size(), 5U);
  ASSERT_EQ(other.size(), 5U);
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(text(first[i]), text(again[i]));
    EXPECT_NE(text(first[i]), text(other[i]));
  }
}

TEST(RandomChoices, LeaveOutWhatTheDeviceDoesNotHave) {
  const Operation& gemm = built_in("gemm");
  EXPECT_TRUE(random_candidates(gemm, device("gfx906"), "matrix", 3, 1).empty());
  const auto choices = random_candidates(gemm, device("gfx1100"), "matrix", 8, 1);
  EXPECT_EQ(choices.size(), 8U);
  for (const auto& choice : choices) {
    EXPECT_EQ(choice.config.variant, "matrix");
    EXPECT_NE(choice.problem.dtype, DType::f32) << "WMMA takes no f32";
  }
}

TEST(SampleChoices, AreDifferentAndOfOneVariant) {
  const Operation& gemm = built_in("gemm");
  const auto problem = Problem::parse("gemm dtype=f16 out=f16 m=64 n=64 k=64").value();
  std::set<std::string> texts;
  for (const auto& choice : sample_candidates(gemm, problem, device("gfx942"), "tiled", 40, 3)) {
    EXPECT_EQ(choice.config.variant, "tiled");
    EXPECT_EQ(choice.problem, problem);
    texts.insert(choice.config.text());
  }
  EXPECT_EQ(texts.size(), 40U);
  const auto space = gemm.space(problem, device("gfx942"));
  EXPECT_EQ(sample_candidates(gemm, problem, device("gfx942"), "naive", 1000, 3).size(),
            space.count("naive"));
}

}  // namespace
}  // namespace greta::test::candidates_test
