// Protects: the search for a change offers statements that a function lacks, of those that others
// have, and assignments to a variable that nothing changes; and constants in the text of macros.

#include "tuner/diagnose/changes/missing_statements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/layers.hpp"
#include "tuner/diagnose/changes/change_slots.hpp"
#include "tuner/diagnose/changes/source_changes.hpp"

namespace greta::test::missing_statements_test {
namespace {

/// Whether a source's changes contain one that gives a text; and whether the first such one is of
/// this kind.
bool offers(const std::string& source, const std::string& wanted, const std::string& kind) {
  const auto changes = changes_of(source, "sum");
  return std::any_of(changes.begin(), changes.end(), [&](const SourceChange& one) {
    return one.kind == kind && one.applied_to(source) == wanted;
  });
}

TEST(MissingStatements, AreThoseOfOtherFunctionsWhoseVariablesAreKnown) {
  const std::string before =
                        "void left(float* first, Pack pack) {\n"
                        "  check(first);\n"
                        "  store_words(first, pack.raw);\n"
                        "}\n"
                        "void right(float* first, Pack pack) {\n"
                        "  check(first);",
                    after = "\n}\n__global__ void sum(float* y) { left(y, 1); right(y, 2); }\n";
  EXPECT_TRUE(offers(before + after, before + " store_words(first, pack.raw);" + after,
                     "missing statement"));
  const std::string other = "void sum(float* other) {\n  check(other);";
  EXPECT_FALSE(offers(before + "}\n" + other + "\n}\n",
                      before + "}\n" + other + " store_words(first, pack.raw);\n}\n",
                      "missing statement"));
}

TEST(MissingStatements, AreAssignmentsToVariablesThatNothingChanges) {
  const std::string before =
                        "__global__ void sum(float* y, int n) {\n"
                        "  int before = 0;\n"
                        "  const int last = 2;\n"
                        "  y[0] = n;",
                    after = "\n  y[before] = last;\n}\n";
  EXPECT_TRUE(offers(before + after, before + " before = n;" + after, "missing statement"));
  EXPECT_FALSE(offers(before + after, before + " last = n;" + after, "missing statement"));
}

TEST(MissingStatements, AreBodiesOfEmptyConditions) {
  const std::string before =
                        "__global__ void sum(float* y, int n) {\n"
                        "  if (n > 1) y[n] = 1;\n"
                        "  if (n > 2) ",
                    after = "\n}\n";
  EXPECT_TRUE(offers(before + ";" + after, before + "y[n] = 1;" + after, "missing statement"));
}

TEST(MissingTerms, AreNumbersAndConstantsThatAreTermsElsewhere) {
  const std::string before =
                        "__global__ void sum(float* y, int n) {\n"
                        "  y[0] = n - 127 + TILE;\n"
                        "  y[1] = n + 127;\n"
                        "  y[2] = y[n]",
                    after = ";\n}\n";
  EXPECT_TRUE(offers(before + after, before + " + 127" + after, "missing term"));
  EXPECT_TRUE(offers(before + after, before + " + TILE" + after, "missing term"));
}

const std::string with_macros =
    "#define TILE 16\n"
    "int none;\n"
    "#define BYTES (WIDE != 0 ? 8 : 4)\n"
    "#define UNUSED (1 + 2)\n"
    "#define CHOICE (3 + 4)\n"
    "#if CHOICE\n"
    "#endif\n"
    "#define PLACE(i) (TILE * (i) + BYTES)\n"
    "__global__ void sum(float* y, int n) { y[PLACE(n) + CHOICE] = TILE; }\n";

TEST(UsedMacros, AreExpressionsThatTheEntryUses) {
  std::vector<std::string> texts;
  for (const auto& macro : used_macros(with_macros, "sum")) {
    const std::size_t start = macro.front().start;
    texts.push_back(with_macros.substr(start, macro.back().end() - start));
  }
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(texts, (std::vector<std::string>{"(TILE * (i) + BYTES)", "(WIDE != 0 ? 8 : 4)"}));
}

TEST(UsedMacros, HaveChangesAndSlots) {
  std::string changed = with_macros;
  changed.replace(changed.find("8 : 4"), 1, "2");
  EXPECT_TRUE(offers(with_macros, changed, "wrong constant"));
  const auto slots = slots_of(with_macros, "sum");
  EXPECT_EQ(
      std::count_if(slots.begin(), slots.end(),
                    [](const ChangeSlot& slot) { return slot.kind == ChangeSlot::Kind::macro; }),
      2);
}

}  // namespace
}  // namespace greta::test::missing_statements_test
