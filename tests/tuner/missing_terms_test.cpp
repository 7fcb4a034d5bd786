// Protects: the search for a change inserts terms that other places of the source have after the
// same word, the most likely first, and only where their variables are known.

#include "tuner/diagnose/changes/missing_terms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/layers.hpp"
#include "tuner/diagnose/changes/source_changes.hpp"

namespace greta::test::missing_terms_test {
namespace {

const std::string two_places =
    "__device__ float other(const float* a, int row, int width) { return a[row * width + 1]; }\n"
    "__global__ void sum(float* y, const float* x, int row, int col, int n) {\n"
    "  y[row + col] = x[row * n + col] + other(x, row, n);\n"
    "}\n";

TEST(MissingTerms, AreThoseOfOtherPlacesWithKnownVariables) {
  const auto terms = missing_terms(two_places, used_tokens(two_places, "sum"));
  const std::size_t at = two_places.find("row + col]") + 3;
  const auto has = [&](const std::string& text) {
    return std::any_of(terms.begin(), terms.end(), [&](const MissingTerm& term) {
      return term.at == at && term.text == text && term.likelihood == MissingTerm::Likelihood::fits;
    });
  };
  EXPECT_TRUE(has(" * n"));
  EXPECT_FALSE(has(" * width"));  // unknown in this function
}

TEST(MissingTerms, AreThoseThatFollowTheSameFunction) {
  const std::string text =
      "__global__ void copy(float* y, const float* x, int n) {\n"
      "  y[place(n)] = x[place(2) * 4] + x[place(3) * 4];\n"
      "}\n";
  const auto terms = missing_terms(text, used_tokens(text, "copy"));
  EXPECT_TRUE(std::any_of(terms.begin(), terms.end(), [&](const MissingTerm& term) {
    return term.at == text.find("] = x") && term.text == " * 4" &&
           term.likelihood == MissingTerm::Likelihood::fits;
  }));
}

TEST(MissingTerms, AVariableThatNothingReadsIsLikelyToBeMissing) {
  const auto has = [](const std::string& body) {
    const std::string text =
        "__global__ void copy(float* y, float* x, int n, int from) {\n" + body + "}\n";
    const auto changes = changes_of(text, "copy");
    return std::any_of(changes.begin(), changes.end(), [&](const SourceChange& one) {
      return one.rank == 0 && one.applied_to(text).find("x[n + from]") != std::string::npos;
    });
  };
  EXPECT_TRUE(has("  y[0] = x[n];\n"));
  EXPECT_FALSE(has("  y[0] = x[n]; y[1] = x[2 - from];\n"));
}

TEST(MissingTerms, AreAmongTheMostLikelyChanges) {
  const std::string mended = "y[row * n + col] =";
  const auto changes = changes_of(two_places, "sum");
  const auto found = std::find_if(changes.begin(), changes.end(), [&](const SourceChange& one) {
    return one.applied_to(two_places).find(mended) != std::string::npos;
  });
  ASSERT_NE(found, changes.end());
  EXPECT_EQ(found->kind, "missing term");
  EXPECT_EQ(found->rank, 0);
}

TEST(MissingTerms, BarriersAreInsertedWithTheirArguments) {
  const std::string text =
      "__global__ void copy(float* y) {\n  start(y);\n  wait_for_copies<2, 1>();\n  y[0] = 1;\n}\n";
  const auto changes = changes_of(text, "copy");
  EXPECT_TRUE(std::any_of(changes.begin(), changes.end(), [](const SourceChange& one) {
    return one.kind == "missing barrier" && one.by == " wait_for_copies<2, 1>();";
  }));
}

/// Whether a text becomes another one by one of its likely changes.
bool is_mended(const std::string& text, const std::string& mended) {
  const auto changes = changes_of(text, "copy");
  return std::any_of(changes.begin(), changes.end(), [&](const SourceChange& one) {
    return one.rank == 0 && one.applied_to(text).find(mended) != std::string::npos;
  });
}

/// Whether one of a text's changes, of any rank, makes another one of it.
bool may_become(const std::string& text, const std::string& mended, const char* entry) {
  const auto changes = changes_of(text, entry);
  return std::any_of(changes.begin(), changes.end(), [&](const SourceChange& one) {
    return one.applied_to(text).find(mended) != std::string::npos;
  });
}

TEST(SourceChanges, ANumberMayBeAnotherOneOfTheFunction) {
  EXPECT_TRUE(
      may_become("__global__ void copy(float* y) { y[0] = y[1] + y[37]; y[0] = y[0] + 2; }\n",
                 "y[0] = y[37] + 2;", "copy"));
}

TEST(SourceChanges, TheIndexOfALaneMayBeMissingBeforeAnOperator) {
  EXPECT_TRUE(may_become("void main() { y[0] = z[gl_SubgroupInvocationID] + z[first % 8]; }\n",
                         "z[first + gl_SubgroupInvocationID % 8]", "main"));
}

/// Returns the place in their order of the change that makes a text of another one.
std::size_t place_of(const std::string& text, const std::string& mended, const char* entry) {
  const auto changes = changes_of(text, entry);
  const auto found = std::find_if(changes.begin(), changes.end(), [&](const SourceChange& one) {
    return one.applied_to(text).find(mended) != std::string::npos;
  });
  EXPECT_NE(found, changes.end());
  return static_cast<std::size_t>(found - changes.begin());
}

TEST(SourceChanges, AnElementLikeTheOneBeforeIsSuspect) {
  const auto place = [](const std::string& first) {
    const std::string begin = "__global__ void copy(Pair* y, int i) {\n  y[i] = Pair{" + first;
    const std::string end = "};\n  y[i + 1] = y[i];\n}\n";
    return place_of(begin + "(i), part(i)" + end, "(i), part(i + 1)}", "copy");
  };
  EXPECT_LT(place("part"), place("whole"));
}

TEST(SourceChanges, OfAMacroAreWeighedByOtherMacros) {
  const std::string use = "void main() { y[0] = IN + OUT; y[1] = IN_F16; }\n";
  const std::string out = "#define OUT (OUT_F16 != 0 || OUT_BF16 != 0 ? 2 : 4)\n",
                    in = "#define IN (IN_F16 == 0 || IN_BF16 != 0 ? 2 : 4)\n";
  const std::string text = "int y[2];\n" + out + in + use;
  EXPECT_LT(place_of(text, "(IN_F16 != 0 || IN_BF16 != 0 ?", "main"),
            place_of(text, "(IN_F16 == 0 && IN_BF16 != 0 ?", "main"));
}

TEST(SourceChanges, ANegatedConditionIsNotNegatedAgain) {
  const std::string text = "__global__ void copy(float* y) { if (!last(y)) return; y[0] = 1; }\n";
  EXPECT_TRUE(may_become(text, "if (last(y)) return;", "copy"));
  EXPECT_FALSE(may_become(text, "if (!(!last(y))) return;", "copy"));
}

TEST(SourceChanges, BarriersMayFollowABlock) {
  EXPECT_TRUE(
      is_mended("__global__ void copy(float* y) {\n  if (y[0] > 1) {\n    y[1] = 1;\n  }\n"
                "  y[2] = y[1];\n}\n",
                "  } __syncthreads();\n  y[2]"));
}

TEST(SourceChanges, StatementsWithAChoiceMayBeExchanged) {
  EXPECT_TRUE(
      is_mended("__global__ void copy(float* y) {\n  y[1] = y[0];\n"
                "  y[0] = y[2] > 1 ? y[3] : y[4];\n}\n",
                "y[0] = y[2] > 1 ? y[3] : y[4]; y[1] = y[0];"));
}

TEST(SourceChanges, OutIsAVariableInHip) {
  EXPECT_TRUE(
      is_mended("__global__ void copy(float* out, int n) {\n  *(out - n) = 1;\n}\n", "(out + n)"));
}

}  // namespace
}  // namespace greta::test::missing_terms_test
