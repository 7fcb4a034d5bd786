#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "kernels/model/expression.hpp"

/// Text form of expressions: printing and parsing.
namespace greta::kernels {
namespace {

/// How tightly an operator binds. An operand that binds less tightly needs parentheses.
enum Precedence { choices, disjunctions, conjunctions, comparisons, sums, products, signs, atoms };

struct Operator {
  std::string_view text;
  Precedence precedence;
};

/// Indexed by Step::Kind.
constexpr std::array<Operator, 21> operators{{
    {"", atoms},          {"", atoms},         {"-", signs},        {"not ", signs},
    {"*", products},      {"/", products},     {"%", products},     {"+", sums},
    {"-", sums},          {"<", comparisons},  {"<=", comparisons}, {">", comparisons},
    {">=", comparisons},  {"==", comparisons}, {"!=", comparisons}, {"and", conjunctions},
    {"or", disjunctions}, {"min", atoms},      {"max", atoms},      {"ceil_div", atoms},
    {"?", choices},
}};

}  // namespace

std::string Expression::text() const {
  struct Part {
    std::string text;
    Precedence precedence;
  };
  std::vector<Part> stack;
  const auto pop = [&stack](Precedence least) {
    Part part = std::move(stack.back());
    stack.pop_back();
    return part.precedence < least ? "(" + part.text + ")" : part.text;
  };
  for (const Step& step : steps_) {
    const auto& [text, precedence] = operators.at(step.kind);
    const auto tighter = static_cast<Precedence>(precedence + 1);
    std::string whole;
    if (step.kind == Step::constant) {
      whole = std::to_string(step.operand);
      stack.push_back({whole, step.operand < 0 ? signs : atoms});
      continue;
    }
    if (step.kind == Step::parameter) {
      whole = parameters_[static_cast<std::size_t>(step.operand)];
    } else if (step.kind == Step::negative || step.kind == Step::logical_not) {
      whole = fmt::format("{}{}", text, pop(atoms));
    } else if (step.kind == Step::choice) {
      const std::string no = pop(choices), yes = pop(choices), condition = pop(disjunctions);
      whole = fmt::format("{} ? {} : {}", condition, yes, no);
    } else if (precedence == atoms) {
      const std::string second = pop(choices), first = pop(choices);
      whole = fmt::format("{}({}, {})", text, first, second);
    } else {
      const std::string second = pop(tighter);
      const std::string first = pop(precedence == comparisons ? tighter : precedence);
      whole = fmt::format("{} {} {}", first, text, second);
    }
    stack.push_back({std::move(whole), precedence});
  }
  return stack.back().text;
}

namespace {

/// A recursive-descent parser with one function per precedence level. Reports the first error.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Expression> parse() {
    Expression whole = choice();
    skip_spaces();
    if (failure_.empty() && position_ < text_.size()) fail("there is more");
    if (failure_.empty()) return whole;
    return Failure{Status::invalid_argument,
                   fmt::format("expression \"{}\", character {}: {}", text_, where_ + 1, failure_),
                   {}};
  }

 private:
  static constexpr int deepest = 64;  ///< maximum nesting of parentheses

  Expression fail(std::string why) {
    if (failure_.empty()) {
      failure_ = std::move(why);
      where_ = position_;
    }
    position_ = text_.size();
    return 0;
  }

  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  static bool in_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  }

  /// Consumes `wanted` if the text continues with it, and returns whether it does. A word must end
  /// there.
  bool take(std::string_view wanted) {
    skip_spaces();
    const std::string_view rest = text_.substr(position_);
    if (!rest.starts_with(wanted)) return false;
    const bool word = in_word(wanted.back());
    if (word && rest.size() > wanted.size() && in_word(rest[wanted.size()])) return false;
    position_ += wanted.size();
    return true;
  }

  Expression choice() {
    if (++depth_ > deepest) return fail("it is nested too deeply");
    Expression condition = disjunction();
    if (take("?")) {
      const Expression yes = choice();
      if (!take(":")) return fail("\":\" is missing");
      condition = select(condition, yes, choice());
    }
    --depth_;
    return condition;
  }

  Expression disjunction() {
    Expression left = conjunction();
    while (take("or") || take("||")) left = left || conjunction();
    return left;
  }

  Expression conjunction() {
    Expression left = comparison();
    while (take("and") || take("&&")) left = left && comparison();
    return left;
  }

  /// a < b <= c means a < b and b <= c.
  Expression comparison() {
    Expression left = sum();
    std::optional<Expression> chain;
    while (true) {
      const auto add = [&](auto compare) {
        const Expression right = sum();
        const Expression one = compare(left, right);
        chain = chain ? *chain && one : one;
        left = right;
      };
      using E = const Expression&;
      if (take("<=")) {
        add([](E a, E b) { return a <= b; });
      } else if (take(">=")) {
        add([](E a, E b) { return a >= b; });
      } else if (take("==")) {
        add([](E a, E b) { return a == b; });
      } else if (take("!=")) {
        add([](E a, E b) { return a != b; });
      } else if (take("<")) {
        add([](E a, E b) { return a < b; });
      } else if (take(">")) {
        add([](E a, E b) { return a > b; });
      } else {
        return chain ? *chain : left;
      }
    }
  }

  Expression sum() {
    Expression left = product();
    while (true) {
      if (take("+")) {
        left = left + product();
      } else if (take("-")) {
        left = left - product();
      } else {
        return left;
      }
    }
  }

  Expression product() {
    Expression left = sign();
    while (true) {
      if (take("*")) {
        left = left * sign();
      } else if (take("//") || take("/")) {
        left = left / sign();
      } else if (take("%")) {
        left = left % sign();
      } else {
        return left;
      }
    }
  }

  Expression sign() {
    if (++depth_ > deepest) return fail("it is nested too deeply");
    const auto done = [this](Expression whole) {
      --depth_;
      return whole;
    };
    if (take("-")) return done(-sign());
    if (take("not")) return done(!sign());
    skip_spaces();
    if (!text_.substr(position_).starts_with("!=") && take("!")) return done(!sign());
    return done(atom());
  }

  Expression atom() {
    if (take("(")) {
      Expression inner = choice();
      return take(")") ? inner : fail("\")\" is missing");
    }
    skip_spaces();
    std::size_t end = position_;
    while (end < text_.size() && in_word(text_[end])) ++end;
    const std::string_view word = text_.substr(position_, end - position_);
    if (word.empty()) return fail("a number or a parameter is missing");
    if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) return number(word);
    position_ = end;
    if (!take("(")) return Expression::parameter(std::string(word));
    const Expression first = choice();
    if (!take(",")) return fail("\",\" is missing");
    const Expression second = choice();
    if (!take(")")) return fail("\")\" is missing");
    if (word == "min") return min(first, second);
    if (word == "max") return max(first, second);
    if (word == "ceil_div") return ceil_div(first, second);
    return fail(fmt::format("there is no function {}; those are min, max and ceil_div", word));
  }

  Expression number(std::string_view word) {
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || stop != word.data() + word.size()) {
      return fail(fmt::format("{} is not a whole number of 64 bits", word));
    }
    position_ += word.size();
    return value;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int depth_ = 0;
  std::string failure_;
  std::size_t where_ = 0;
};

}  // namespace

Result<Expression> Expression::parse(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace greta::kernels
