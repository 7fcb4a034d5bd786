// Protects: a diagnosis names a variable that a kernel reads and nothing sets, and no variable that
// is set in any way.

#include "tuner/diagnose/changes/unset_variables.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test::unset_variables_test {
namespace {

std::vector<std::string> names_in(const std::string& body) {
  const std::string text =
      "#define SET_HIDDEN() hidden = 1\n"
      "struct Place { int row; };\n"
      "shared uint arrived;\n"
      "void main() {\n" +
      body + "}\n";
  std::vector<std::string> names;
  for (const UnsetVariable& one : unset_variables(text, "main")) names.push_back(one.name);
  return names;
}

TEST(UnsetVariables, AreThoseThatNothingSets) {
  EXPECT_EQ(names_in("  float sum[4];\n  store(sum[0] + 1);\n"), std::vector<std::string>{"sum"});
  EXPECT_EQ(names_in("  if (arrived == 3) return;\n"), std::vector<std::string>{"arrived"});
}

TEST(UnsetVariables, HaveTheLinesOfTheirDeclarationAndFirstReading) {
  const auto found = unset_variables("void main() {\n  int a;\n\n  store(a + 1);\n}\n", "main");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].declared, 2U);
  EXPECT_EQ(found[0].read, 4U);
}

TEST(UnsetVariables, AreParametersThatReturnNothing) {
  const auto count = [](const std::string& body) {
    const std::string text = "void load(uint at, out float e[8]) {" + body +
                             "}\nvoid main() { float x[8]; load(1, x); }\n";
    return unset_variables(text, "main").size();
  };
  EXPECT_EQ(count(" uint b = at; "), 1U);
  EXPECT_EQ(count(" e[0] = 1; "), 0U);
  EXPECT_EQ(count(" unpack(at, e); "), 0U);
}

TEST(UnsetVariables, AreNotThoseThatMayBeSet) {
  for (const char* const set : {"x = 1;", "x[1].y += 2;", "load(x);", "load(2, x);", "++x;", "x--;",
                                "load(&x);", "for (x = 0; x < 2; ++x) {}", "x.first(2);"}) {
    EXPECT_EQ(names_in(std::string("  float x;\n  ") + set + "\n  store(x + 1);\n"),
              std::vector<std::string>{})
        << set;
  }
  EXPECT_EQ(names_in("  int hidden;\n  SET_HIDDEN();\n  store(hidden + 1);\n"),
            std::vector<std::string>{});
  EXPECT_EQ(names_in("  float x = 1;\n  store(x + 1);\n"), std::vector<std::string>{});
  EXPECT_EQ(names_in("  typedef float Type;\n  store(Type + 1);\n"), std::vector<std::string>{});
  EXPECT_EQ(names_in("  float unread;\n"), std::vector<std::string>{});
}

}  // namespace
}  // namespace greta::test::unset_variables_test
