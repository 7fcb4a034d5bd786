// Protects: of the changes of a source, those come first that make it more like the rest of it.

#include "tuner/diagnose/changes/text_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/layers.hpp"
#include "tuner/diagnose/changes/source_changes.hpp"

namespace greta::test::text_model_test {
namespace {

/// Four rows are loaded alike, but for a part of the last one.
std::string source_with(const std::string& last) {
  return "__global__ void load(float* y, const float* x, int n) {\n"
         "  int i = thread();\n"
         "  y[0] = x[i * 4 + 0] * 2;\n"
         "  y[1] = x[i * 4 + 1] * 2;\n"
         "  y[2] = x[i * 4 + 2] * 2;\n"
         "  " +
         last +
         "\n"
         "}\n";
}

/// Returns the place among a source's changes of the first that gives a text.
std::size_t place_of(const std::string& source, const std::string& wanted) {
  const auto changes = changes_of(source, "load");
  const auto found = std::find_if(changes.begin(), changes.end(), [&](const SourceChange& one) {
    return one.applied_to(source) == wanted;
  });
  EXPECT_NE(found, changes.end());
  return static_cast<std::size_t>(found - changes.begin());
}

TEST(TextModel, GainsByWhatIsUsualAndLosesByWhatIsNot) {
  const std::string source = source_with("y[3] = x[i / 4 + 3] * 2;");
  const auto tokens = tokens_of(source);
  TextModel model(tokens);
  const std::size_t wrong = source.find('/');
  EXPECT_GT(model.gain(wrong, wrong + 1, "*").likelihood, 0);
  const std::size_t right = source.find('*', source.find("x[i"));
  EXPECT_LT(model.gain(right, right + 1, "%").likelihood, 0);
  EXPECT_EQ(model.gain(right, right + 1, "* 2 *").tokens, 2);
}

TEST(TextModel, ParenthesesAroundOneWordChangeNothing) {
  const std::string source = source_with("y[3] = x[i * 4 + 3] * 2;");
  const auto tokens = tokens_of(source);
  TextModel model(tokens);
  const std::size_t at = source.find("n) {");
  EXPECT_EQ(model.gain(at, at, "").likelihood, 0);
  const std::size_t factor = source.find("4 + 3");
  EXPECT_EQ(model.gain(factor, factor + 1, "* (4)").tokens,
            model.gain(factor, factor + 1, "* 4").tokens);
}

TEST(TextModel, KnowsWhatIsNextToEachOther) {
  const std::string source = source_with("y[3] = x[i * 4 + 3] * 2;");
  const auto tokens = tokens_of(source);
  const TextModel model(tokens);
  const std::size_t at = source.find("4 + 3");
  EXPECT_TRUE(model.has_seen(at, at + 1, "4"));
  EXPECT_FALSE(model.has_seen(at, at + 1, "n"));
}

TEST(TextModel, PutsTheInverseOfAFaultFirst) {
  const std::string right = source_with("y[3] = x[i * 4 + 3] * 2;");
  for (const char* const wrong : {"y[3] = x[i / 4 + 3] * 2;", "y[3] = x[i * 4 - 3] * 2;",
                                  "y[3] = x[i * 4 + 3 - 1] * 2;", "y[3] = x[3 + i * 4] / 2;"}) {
    const std::string source = source_with(wrong);
    if (std::string(wrong).find("3 + i") != std::string::npos) {
      EXPECT_LT(place_of(source, source_with("y[3] = x[3 + i * 4] * 2;")), 40U) << wrong;
    } else {
      EXPECT_LT(place_of(source, right), 40U) << wrong;
    }
  }
}

}  // namespace
}  // namespace greta::test::text_model_test
