// Protects: expressions have the semantics of C++ and Python, report errors with their place, and
// survive printing and parsing.

#include "kernels/model/expression.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"

namespace greta::test::expression_test {
namespace {

const std::map<std::string, std::int64_t> values{
    {"A", 7}, {"B", -3}, {"ZERO", 0}, {"BIG", 1L << 62}};

std::optional<std::int64_t> value(const Expression& expression) {
  std::vector<std::int64_t> list;
  for (const std::string& name : expression.parameters()) list.push_back(values.at(name));
  return expression.value(list);
}

std::optional<std::int64_t> value(std::string_view text) {
  return value(Expression::parse(text).value());
}

TEST(Expression, HasCppsArithmetic) {
  EXPECT_EQ(value("A + B * 2"), 1);
  EXPECT_EQ(value("(A + B) * 2"), 8);
  EXPECT_EQ(value("A - B - 1"), 9);
  EXPECT_EQ(value("A / 2 % 2"), 1);
  EXPECT_EQ(value("-A / 2"), -3);
  EXPECT_EQ(value("A // 2"), 3);
  EXPECT_EQ(value("min(A, B) + max(A, B)"), 4);
  EXPECT_EQ(value("ceil_div(A, 2)"), 4);
  EXPECT_EQ(value("A > 5 ? 10 : 20"), 10);
  EXPECT_EQ(value("A > 9 ? 10 : B > 0 ? 1 : 2"), 2);
}

TEST(Expression, HasPythonsTruth) {
  EXPECT_EQ(value("A == 7 and B != -3"), 0);
  EXPECT_EQ(value("A == 7 && B == -3 || ZERO"), 1);
  EXPECT_EQ(value("not A"), 0);
  EXPECT_EQ(value("!ZERO"), 1);
  EXPECT_EQ(value("not A == 7"), 0);
  EXPECT_EQ(value("1 <= A <= 9"), 1);
  EXPECT_EQ(value("1 <= A < 7"), 0);
}

TEST(Expression, IsUndefinedWhereCppWouldBe) {
  for (const char* text : {"A / ZERO", "A % ZERO", "ceil_div(A, ZERO)", "BIG * 4", "BIG + BIG",
                           "-BIG - BIG - 1", "A / ZERO == 1", "not A / ZERO", "A / ZERO and A"}) {
    EXPECT_EQ(value(text), std::nullopt) << text;
  }
  EXPECT_EQ(value("ZERO == 0 or A % ZERO == 0"), 1);
  EXPECT_EQ(value("A % ZERO == 0 or ZERO == 0"), 1);
  EXPECT_EQ(value("ZERO != 0 and A % ZERO == 0"), 0);
  EXPECT_EQ(value("ZERO ? A / ZERO : 5"), 5);
}

TEST(Expression, SaysWhatIsWrongAndWhere) {
  const auto failure = [](std::string_view text) {
    return Expression::parse(text).failure().message;
  };
  EXPECT_EQ(failure("A +"), "expression \"A +\", character 4: a number or a parameter is missing");
  EXPECT_EQ(failure("(A"), "expression \"(A\", character 3: \")\" is missing");
  EXPECT_EQ(failure("A B"), "expression \"A B\", character 3: there is more");
  EXPECT_EQ(failure("pow(A, 2)"),
            "expression \"pow(A, 2)\", character 10: there is no function pow; those are min, max "
            "and ceil_div");
  EXPECT_EQ(failure("99999999999999999999"),
            "expression \"99999999999999999999\", character 1: 99999999999999999999 is not a whole "
            "number of 64 bits");
  for (const std::string& text :
       {std::string(), std::string(5000, '('), std::string(5000, '-'), std::string(5000, '!'),
        std::string("A ? B"), std::string("1x"), std::string("min(A)"), std::string("A $ B")}) {
    EXPECT_FALSE(Expression::parse(text)) << text.substr(0, 20);
  }
}

TEST(Expression, ReadsEachParameterOnce) {
  const Expression e = p["B"] * p["A"] + p["B"];
  EXPECT_EQ(e.parameters(), (std::vector<std::string>{"B", "A"}));
  EXPECT_EQ(e.text(), "B * A + B");
  EXPECT_EQ((2 * Expression(3) + 1).text(), "7");
  EXPECT_EQ(((p["A"] + 1) * (p["A"] - (p["B"] - 1)) % 2 == 0 && !(p["A"] < p["B"])).text(),
            "(A + 1) * (A - (B - 1)) % 2 == 0 and not (A < B)");
}

Expression random_expression(std::mt19937_64& random, int depth) {
  const auto next = [&] { return random_expression(random, depth - 1); };
  switch (depth == 0 ? uniform_below(random, 3) : uniform_below(random, 20)) {
    case 0:
      return static_cast<std::int64_t>(uniform_below(random, 7)) - 2;
    case 1:
      return p["A"];
    case 2:
      return uniform_below(random, 2) == 0 ? p["B"] : p["ZERO"];
    case 3:
      return next() + next();
    case 4:
      return next() - next();
    case 5:
      return next() * next();
    case 6:
      return next() / next();
    case 7:
      return next() % next();
    case 8:
      return -next();
    case 9:
      return !next();
    case 10:
      return next() < next();
    case 11:
      return next() <= next();
    case 12:
      return next() == next();
    case 13:
      return next() != next();
    case 14:
      return next() && next();
    case 15:
      return next() || next();
    case 16:
      return min(next(), next());
    case 17:
      return ceil_div(next(), next());
    case 18:
      return select(next(), next(), next());
    default:
      return next() >= next();
  }
}

// Text that is written to a file must be read back as the same expression.
TEST(Expression, TextIsReadBackAsTheSame) {
  std::mt19937_64 random(3);
  int defined = 0;
  for (int i = 0; i < 5000; ++i) {
    const Expression e = random_expression(random, 5);
    const auto again = Expression::parse(e.text());
    ASSERT_TRUE(again) << again.failure().message;
    EXPECT_EQ(again->text(), e.text());
    EXPECT_EQ(value(*again), value(e)) << e.text();
    defined += value(e) ? 1 : 0;
  }
  EXPECT_GT(defined, 2000);
}

// Constraints are expressions, with functions for table lookups.
TEST(Constraints, ArePrintedAndReadBack) {
  int expressions = 0, functions = 0;
  for (const std::string& name : known_architectures()) {
    for (const Operation& kernel : catalog()) {
      const Problem problem = typical_problem(kernel, kernel.dtypes.front());
      for (const Variant& variant : kernel.variants) {
        for (const Constraint& constraint :
             variant.space(kernel.shape(problem), architecture_info(name).value()).constraints) {
          const auto& expression = constraint.condition.expression();
          (expression ? expressions : functions) += 1;
          if (!expression) continue;
          const auto again = Expression::parse(expression->text());
          ASSERT_TRUE(again) << again.failure().message;
          EXPECT_EQ(again->text(), expression->text());
          EXPECT_EQ(again->parameters(), constraint.condition.parameters());
        }
      }
    }
  }
  EXPECT_GT(expressions, 4 * functions);
}

}  // namespace
}  // namespace greta::test::expression_test
