#include "db/lookup/use_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "kernels/model/problem_rules.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/printable.hpp"
#include "runtime/device/text/spelling.hpp"

namespace greta::db {
namespace {

using Relation = UseCondition::Relation;

/// Longer ones first, since a text is compared with them in order.
constexpr std::array<std::pair<std::string_view, Relation>, 6> relations{
    {{"!=", Relation::not_equal},
     {"<=", Relation::at_most},
     {">=", Relation::at_least},
     {"<", Relation::less},
     {">", Relation::greater},
     {"=", Relation::equal}}};

std::string_view text_of(Relation relation) {
  return std::find_if(relations.begin(), relations.end(),
                      [&](const auto& one) { return one.second == relation; })
      ->first;
}

bool is_order(Relation relation) {
  return relation != Relation::equal && relation != Relation::not_equal;
}

bool holds(std::int64_t a, Relation relation, std::int64_t b) {
  switch (relation) {
    case Relation::equal:
      return a == b;
    case Relation::not_equal:
      return a != b;
    case Relation::less:
      return a < b;
    case Relation::at_most:
      return a <= b;
    case Relation::greater:
      return a > b;
    case Relation::at_least:
      return a >= b;
  }
  return false;
}

/// Reads words, relations and values from left to right.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : rest_(text) {}

  bool at_end() {
    skip_space();
    return rest_.empty();
  }
  bool take(std::string_view mark) {
    skip_space();
    if (!rest_.starts_with(mark)) return false;
    rest_.remove_prefix(mark.size());
    return true;
  }
  /// Takes everything up to white space or one of these characters.
  std::string word(std::string_view ends) {
    skip_space();
    const auto end = std::find_if(rest_.begin(), rest_.end(), [&](char c) {
      return is_space(c) || ends.find(c) != std::string_view::npos;
    });
    const std::string found(rest_.begin(), end);
    rest_.remove_prefix(found.size());
    return found;
  }
  std::optional<Relation> relation() {
    for (const auto& [mark, relation] : relations) {
      if (take(mark)) return relation;
    }
    return std::nullopt;
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

std::string unquoted(std::string value) {
  const bool quoted = value.size() > 2 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

std::vector<std::string> field_names(const Operation& operation) {
  std::vector<std::string> names{"dtype", "out"};
  for (const Dimension& one : operation.dimensions) names.push_back(one.name);
  for (const Attribute& one : operation.attributes) names.push_back(one.name);
  return names;
}

template <typename Named>
const Named* named(const std::vector<Named>& list, std::string_view name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const Named& one) { return one.name == name; });
  return found == list.end() ? nullptr : &*found;
}

Failure bad_condition(const UseCondition& condition, std::string_view why) {
  return invalid_argument(fmt::format("{}{}{}: {}", condition.field, text_of(condition.relation),
                                      condition.value, why));
}

/// Checks a condition for an operation, and makes its value canonical.
Result<void> check_condition(const Operation& operation, UseCondition& condition) {
  if (named(operation.dimensions, condition.field) != nullptr) {
    if (whole_number(condition.value)) return {};
    return bad_condition(condition, "must be a whole number");
  }
  if (condition.field == "dtype" || condition.field == "out") {
    const bool of_input = condition.field == "dtype";
    const bool known =
        std::any_of(operation.dtypes.begin(), operation.dtypes.end(), [&](const DTypes& pair) {
          return to_string(of_input ? pair.in : pair.out) == condition.value;
        });
    if (is_order(condition.relation)) return bad_condition(condition, "types have no order");
    if (known) return {};
    return bad_condition(condition, "must be " + (of_input ? input_types_text(operation)
                                                           : output_types_text(operation)));
  }
  const Attribute* const attribute = named(operation.attributes, condition.field);
  if (attribute == nullptr) {
    return invalid_argument(fmt::format("{}: {}", condition.field,
                                        must_be_one_of(condition.field, field_names(operation))));
  }
  if (is_order(condition.relation)) {
    if (whole_number(condition.value)) return {};
    return bad_condition(condition, "only numbers have an order");
  }
  const auto& allowed = attribute->allowed;
  const auto canonical =
      allowed.empty() ? attribute->canonical(condition.value) : std::optional(condition.value);
  const bool known = allowed.empty()
                         ? canonical || condition.value == attribute->fallback
                         : std::find(allowed.begin(), allowed.end(), *canonical) != allowed.end();
  if (!known) return bad_condition(condition, "must be " + values_text(*attribute));
  condition.value = canonical.value_or(condition.value);
  return {};
}

bool holds(const UseCondition& condition, const Operation& operation, const Problem& problem) {
  const auto same = [&](std::string_view value) {
    return (value == condition.value) == (condition.relation == Relation::equal);
  };
  if (condition.field == "dtype") return same(to_string(problem.dtype));
  if (condition.field == "out") return same(to_string(problem.out_dtype));
  if (const Dimension* const dimension = named(operation.dimensions, condition.field)) {
    const std::int64_t fallback = whole_number(dimension->fallback).value_or(0);
    const auto wanted = whole_number(condition.value);
    return wanted && holds(problem.dim(condition.field, fallback), condition.relation, *wanted);
  }
  const Attribute& attribute = *named(operation.attributes, condition.field);
  const std::string value = problem.attribute(condition.field, default_value(attribute, problem));
  const auto number = whole_number(value), wanted = whole_number(condition.value);
  if (number && wanted) return holds(*number, condition.relation, *wanted);
  return !is_order(condition.relation) && same(value);
}

/// Returns the parameters of a variant for all typical problems on a device.
std::vector<Alternative> typical_spaces(const Operation& operation, const Variant& variant,
                                        const DeviceInfo& device) {
  std::vector<Alternative> spaces;
  for (const DTypes& types : operation.dtypes) {
    for (std::size_t i = 0; i < operation.sizes.size(); ++i) {
      const Problem problem = typical_problem(operation, types, i);
      if (!check_problem(operation, problem)) continue;
      spaces.push_back(variant.space(operation.shape(problem), device));
    }
  }
  return spaces;
}

Result<void> check_values(const Operation& operation, const Variant& variant,
                          const DeviceInfo& device, const UseValues& values) {
  if (values.empty()) return {};
  const auto spaces = typical_spaces(operation, variant, device);
  for (const auto& [name, value] : values) {
    std::vector<std::string> names;
    bool known = false, readable = false;
    for (const Alternative& space : spaces) {
      for (const Parameter& parameter : space.parameters) {
        if (std::find(names.begin(), names.end(), parameter.name) == names.end())
          names.push_back(parameter.name);
      }
      if (named(space.parameters, name) == nullptr) continue;
      known = true;
      readable = readable || number_of(space, name, value);
    }
    if (!known) return invalid_argument(fmt::format("{}: {}", name, must_be_one_of(name, names)));
    if (!readable)
      return invalid_argument(fmt::format("{}={}: must be a whole number", name, value));
  }
  return {};
}

/// Checks what a rule says for one operation, and makes values of conditions canonical.
Result<void> check_for(const Operation& operation, const DeviceInfo& device,
                       std::vector<UseCondition>& conditions, const std::string& variant,
                       const UseValues& values) {
  for (UseCondition& condition : conditions) {
    if (auto good = check_condition(operation, condition); !good) return good;
  }
  const Variant* const chosen = named(operation.variants, variant);
  if (chosen == nullptr) {
    return invalid_argument(
        fmt::format("{}: {}", variant, must_be_one_of(variant, operation.variant_names())));
  }
  return check_values(operation, *chosen, device, values);
}

Result<std::vector<UseCondition>> read_conditions(RuleReader& reader) {
  std::vector<UseCondition> conditions;
  while (!reader.take(":")) {
    if (reader.at_end()) return invalid_argument("must be OPERATION CONDITIONS: VARIANT VALUES");
    UseCondition condition;
    condition.field = reader.word("=!<>:");
    const auto relation = reader.relation();
    if (relation) condition.value = unquoted(reader.word(":"));
    if (condition.field.empty() || condition.value.empty()) {
      return invalid_argument(fmt::format(
          "\"{}\": a condition must be NAME, one of = != < <= > >=, and a value", condition.field));
    }
    condition.relation = *relation;
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

Result<UseValues> read_values(RuleReader& reader) {
  UseValues values;
  while (!reader.at_end()) {
    const std::string name = reader.word("=");
    const std::string value = reader.take("=") ? reader.word("") : "";
    if (name.empty() || value.empty())
      return invalid_argument(fmt::format("\"{}\": must be PARAMETER=VALUE", name));
    if (std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.first == name; }))
      return invalid_argument(fmt::format("{} is given twice", name));
    values.emplace_back(name, value);
  }
  return values;
}

}  // namespace

Result<UseRule> UseRule::parse(const Catalog& catalog, const DeviceInfo& device,
                               std::string_view text) {
  const auto refused = [&](const Failure& why) {
    return invalid_argument(fmt::format("rule \"{}\": {}", one_line(text), why.message));
  };
  UseRule rule;
  RuleReader reader(text);
  rule.operation_ = reader.word(":");
  auto conditions = read_conditions(reader);
  if (!conditions) return refused(conditions.failure());
  rule.variant_ = reader.word("");
  if (rule.variant_.empty()) return refused(invalid_argument("the variant is missing"));
  auto values = read_values(reader);
  if (!values) return refused(values.failure());
  rule.values_ = *std::move(values);
  rule.conditions_ = *std::move(conditions);

  std::vector<std::string> names{"*"};
  std::optional<Failure> why;
  bool accepted = false;
  for (const Operation& operation : catalog) {
    names.push_back(operation.name);
    if (rule.operation_ != "*" && rule.operation_ != operation.name) continue;
    auto good = check_for(operation, device, rule.conditions_, rule.variant_, rule.values_);
    if (!good && !why) why = good.failure();
    accepted = accepted || good;
  }
  if (!accepted && rule.operation_ == "*") {
    return refused(invalid_argument("no operation has this variant, these fields and parameters"));
  }
  if (!accepted && why) return refused(*why);
  if (!accepted) {
    return refused(invalid_argument(
        fmt::format("{}: {}", rule.operation_, must_be_one_of(rule.operation_, names))));
  }
  rule.text_ = rule.operation_;
  for (const UseCondition& one : rule.conditions_)
    rule.text_ += fmt::format(" {}{}{}", one.field, text_of(one.relation), one.value);
  rule.text_ += ": " + rule.variant_;
  for (const auto& [name, value] : rule.values_) rule.text_ += fmt::format(" {}={}", name, value);
  return rule;
}

bool UseRule::matches(const Operation& operation, const Problem& problem) const {
  if (operation_ != "*" && operation_ != operation.name) return false;
  if (named(operation.variants, variant_) == nullptr) return false;
  const auto fields = field_names(operation);
  return std::all_of(conditions_.begin(), conditions_.end(), [&](const UseCondition& condition) {
    return std::find(fields.begin(), fields.end(), condition.field) != fields.end() &&
           holds(condition, operation, problem);
  });
}

Result<std::vector<PlacedRule>> placed_rules(std::string_view text) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;
  if (!text.starts_with('@')) return std::vector<PlacedRule>{{"", std::string(text)}};
  const std::string file(text.substr(1));
  const auto content = read_file(file, most_bytes);
  if (!content) return content.failure();
  std::vector<PlacedRule> rules;
  std::istringstream lines(*content);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    rules.push_back({fmt::format("{}:{}", file, number), line});
  }
  return rules;
}

}  // namespace greta::db
