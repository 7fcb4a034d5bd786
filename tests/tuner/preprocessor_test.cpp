// Protects: of a kept case's source, the search for a change leaves out only lines that are not
// compiled for certain, and any text ends soon.

#include "tuner/diagnose/changes/preprocessor.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/layers.hpp"

namespace greta::test::preprocessor_test {
namespace {

/// Returns whether each line is compiled, or may be: 'x', or '.'.
std::string lines_of(const std::string& source) {
  std::string marks;
  for (const auto active : compiled_lines(source).active) marks += active != 0 ? 'x' : '.';
  return marks;
}

TEST(CompiledLines, FollowWhatIsKnown) {
  EXPECT_EQ(lines_of("#define A 2\n#if A == 1\none\n#else\ntwo\n#endif").substr(0, 5), "xx..x");
  EXPECT_EQ(lines_of("#define A 2\n#if A * 3 - 1 == 5 && !defined(B)\none\n#endif").substr(0, 3),
            "xxx");
}

TEST(CompiledLines, MayBeCompiledIfAnythingIsUnknown) {
  // The value may come from an option, so that neither definition nor condition is certain.
  EXPECT_EQ(lines_of("#ifndef A\n#define A 16\n#endif\n#if A == 32\none\n#endif")[4], 'x');
  EXPECT_EQ(lines_of("#define A 1\n#undef A\n#if A == 2\none\n#endif")[3], 'x');
  EXPECT_EQ(lines_of("#if B\n#define A 1\n#endif\n#if A == 2\none\n#endif")[4], 'x');
}

TEST(CompiledLines, HostileConditionsEndSoon) {
  std::string nested;
  for (int i = 0; i < 20; ++i) {
    const std::string next = "M" + std::to_string(i + 1);
    nested += "#define M" + std::to_string(i) + " ";
    for (int j = 0; j < 10; ++j) nested += next + " + ";
    nested += "1\n";
  }
  for (const std::string& condition :
       {std::string("(-9223372036854775807 - 1) / -1"), std::string(100000, '('),
        std::string(100000, '!'), std::string("9223372036854775807 * 9223372036854775807"),
        std::string("1 % 0"), std::string("M0")}) {
    EXPECT_EQ(lines_of(nested + "#if " + condition + "\none\n#endif\n")[20], 'x');
  }
}

}  // namespace
}  // namespace greta::test::preprocessor_test
