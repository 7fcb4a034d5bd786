// Protects: formulas of descriptions mean what they mean in Python, and whatever is written in one,
// evaluation ends soon, with a value or with a message that tells the place.

#include "kernels/described/formula.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/layers.hpp"

namespace greta::test::formula_test {
namespace {

const std::map<std::string, FormulaValue> known{
    {"n", {std::int64_t{100}}},
    {"block", {std::int64_t{32}}},
    {"mode", {std::string("fast")}},
    {"on", {true}},
};

/// The value as text, or the message after "! ".
std::string evaluated(const std::string& text) {
  const auto formula = Formula::parse(text);
  if (!formula) return "! " + formula.failure().message;
  const auto value = formula->value([](const std::string& name) {
    const auto found = known.find(name);
    return found == known.end() ? nullptr : &found->second;
  });
  return value ? value->text() : "! " + value.failure().message;
}

TEST(Formula, IsPythons) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"1 + 2 * 3", "7"},
      {"(1 + 2) * 3", "9"},
      {"2 ** 3 ** 2", "512"},
      {"-2 ** 2", "-4"},
      {"2 ** -1", "0.5"},
      {"7 // 2", "3"},
      {"-7 // 2", "-4"},
      {"-7 % 3", "2"},
      {"7 % -3", "-2"},
      {"7 / 2", "3.5"},
      {"6 / 2", "3.0"},
      {"1e3 + .5", "1000.5"},
      {"not 0 == 1", "True"},
      {"1 < 2 < 3", "True"},
      {"1 < 3 < 2", "False"},
      {"1 or 1 // 0", "1"},
      {"0 and 1 // 0", "0"},
      {"[] or 'word'", "'word'"},
      {"1 if [] else 2 if 0 else 3", "3"},
      {"3 in [1, 2, 3] and 4 not in (1, 2)", "True"},
      {"[1, 2, 4] + list(range(32, 129, 32))", "[1, 2, 4, 32, 64, 96, 128]"},
      {"[2**i for i in range(0, 6)]", "[1, 2, 4, 8, 16, 32]"},
      {"[i for i in range(10, 0, -3) if i != 7]", "[10, 4, 1]"},
      {"[[i, 1] for i in [1, 2]]", "[[1, 1], [2, 1]]"},
      {"min(3, 1, 2) + max([4, 9, 6])", "10"},
      {"min(2, 1.5)", "1.5"},
      {"True + True", "2"},
      {"len([1, 2]) + abs(-3) + int(2.9) + int(-2.9)", "5"},
      {"ceil_div(n, block)", "4"},
      {"mode == 'fast' and on", "True"},
      {"mode == \"slow\" || !on", "False"},
      {"(1)", "1"},
      {"(1,)", "[1]"},
      {"1 == 1.0", "True"},
      {"block*2<=n&&block%16==0", "True"},
      {"float(1)", "1.0"},
      {"[4, 5, 6][0] + [4, 5, 6][-1] + [[7]][0][0]", "17"},
      {"[x for x in [1, 2]] == [1, 2]", "True"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(evaluated(text), expected) << text;
}

TEST(Formula, TellsThePlaceOfAnError) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "column 1: the formula ends here"},
      {"1 +", "column 4: the formula ends here"},
      {"1 2", "column 3: '2' is not expected here"},
      {"(1", "column 3: ')' is expected here"},
      {"3x", "column 2: a number ends before this"},
      {"m + 1", "nothing is called m"},
      {"open('/etc/passwd')",
       "column 1: there is no function open; these exist: abs, ceil_div, float, int, len, list, "
       "max, min, range"},
      {"n.__class__", "column 2: '.__class__' is not expected here"},
      {"lambda: 1", "column 1: 'lambda' is not expected here"},
      {"[1][1]", "column 4: a list of 1 has no item 1"},
      {"[1][-2]", "column 4: a list of 1 has no item -2"},
      {"n[0]", "column 2: an integer of an integer is not an item"},
      {"1 + 1 // 0", "column 7: a division by zero"},
      {"n % 0", "column 3: a division by zero"},
      {"'a' + 1", "column 5: a word and an integer can't be calculated with"},
      {"'a' < 'b'", "column 5: a word and a word have no order"},
      {"9223372036854775807 + 1", "column 21: an integer of more than 64 bits"},
      {"9223372036854775808", "column 1: the number is out of range"},
      {"2 ** 63", "column 3: an integer of more than 64 bits"},
      {"1e308 * 10", "column 7: a number that is not finite"},
      {"'abc", "column 1: the word has no end"},
      {"1 in 2", "column 3: 'in' needs a list, not an integer"},
      {"range(1, 2, 0)", "column 1: the step of a range is 0"},
      {"range(10**9)", "column 1: a list has at most 65536 elements"},
      {"max([])", "column 1: an empty list has no least or greatest element"},
      {"abs(1, 2)", "column 1: abs takes 1 operand, not 2"},
      {"[i for i in range(9) for j in range(9)]",
       "column 22: ']' is expected here, not 'for j in ran'"},
      {"min(i for i in [1])", "column 7: ',' is expected here, not 'for i in [1]'"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(evaluated(text), "! " + expected) << text;
}

TEST(Formula, HasLimits) {
  const std::string deep(100, '('), long_sum(Formula::most_characters + 1, '1');
  EXPECT_EQ(evaluated(deep + "1" + std::string(100, ')')),
            "! column 31: a formula is at most 60 deep");
  EXPECT_EQ(evaluated(long_sum), "! column 4097: a formula has at most 4096 characters");
  std::string many = "1";
  for (int i = 0; i < 700; ++i) many += "+1";
  EXPECT_EQ(evaluated(many).substr(0, 10), "! column 1");
  EXPECT_EQ(evaluated("[[j for j in range(60000)] for i in range(60000)]"),
            "! column 13: a comprehension does not lie within another");
  EXPECT_EQ(evaluated("[len(range(60000)) for i in range(60000)]"),
            "! column 2: the formula takes more than 1000000 steps");
  EXPECT_EQ(evaluated("0 ** 9000000000000000000 + 1 ** 9000000000000000000"), "1");
}

TEST(Formula, NamesEachNameOnce) {
  const auto formula = Formula::parse("[n * i for i in range(block)] + [n] + [max(m, n)]");
  ASSERT_TRUE(formula) << formula.failure().message;
  EXPECT_EQ(formula->names(), (std::vector<std::string>{"block", "n", "m"}));
}

/// Texts made of a formula's pieces, many of which are no formulas.
TEST(Formula, AnythingEnds) {
  const std::vector<std::string> pieces{
      "n",   "block", "1",  "0",    "2.5",   "'a'", "[",      "]",    "(",         ")",  ",",
      "+",   "-",     "*",  "**",   "/",     "//",  "%",      "<",    "==",        "in", "not",
      "and", "or",    "if", "else", " for ", " i ", "range(", "max(", "ceil_div(", "!"};
  std::mt19937_64 random(7);
  int values = 0, messages = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    const std::size_t count = 1 + random() % 12;
    for (std::size_t k = 0; k < count; ++k) text += pieces[random() % pieces.size()] + " ";
    const std::string result = evaluated(text);
    ASSERT_FALSE(result.empty());
    (result[0] == '!' ? messages : values)++;
  }
  EXPECT_GT(values, 300);
  EXPECT_GT(messages, 500);
}

}  // namespace
}  // namespace greta::test::formula_test
