#include "tuner/cli/options/problem_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "kernels/model/problem_rules.hpp"

namespace greta::tuner::cli {
namespace {

bool is_number(const std::string& word) {
  return word.find_first_not_of("0123456789.e-") == std::string::npos;
}

/// Returns the values of an attribute for --help: "nn|nt|tn", "NUMBER", "none|NUMBER".
std::string value_name(const Attribute& attribute) {
  if (!attribute.allowed.empty()) return fmt::format("{}", fmt::join(attribute.allowed, "|"));
  if (attribute.packed) return "ELEMENTS";
  if (is_number(attribute.fallback)) return "NUMBER";
  const auto& examples = attribute.examples;
  const bool numbers = std::any_of(examples.begin(), examples.end(), is_number);
  return numbers ? attribute.fallback + "|NUMBER" : "LIST";
}

}  // namespace

std::string option_of(std::string_view field) {
  if (field == "out") return "--out-dtype";
  std::string option = fmt::format("--{}", field);
  std::replace(option.begin() + 2, option.end(), '_', '-');
  return option;
}

std::string example_problem(const Operation& operation, const std::string& name) {
  const Problem problem = typical_problem(operation, operation.dtypes.front());
  std::string text = name;
  for (const auto& dimension : operation.dimensions) {
    if (dimension.fallback.empty())
      text += fmt::format(" {} {}", option_of(dimension.name), problem.dim(dimension.name));
  }
  return text;
}

CommandError bad_option(const Failure& failure) {
  if (!failure.field) return {exit_usage, failure.message};
  const auto& [field, value, reason] = *failure.field;
  return {exit_usage, value.empty() ? fmt::format("{} {}", option_of(field), reason)
                                    : fmt::format("{} {}: {}", option_of(field), value, reason)};
}

void refuse_names_of_options(const std::string& file, const std::function<void()>& add) {
  try {
    add();
  } catch (const CLI::OptionAlreadyAdded& error) {
    // "added option matched existing option name: budget is already added"
    const std::string text = error.what();
    const std::size_t colon = text.rfind(": ");
    const std::string after = colon == std::string::npos ? text : text.substr(colon + 2);
    throw CommandError(exit_usage,
                       fmt::format("{}: dimensions.{}: has the name of an option of this command",
                                   file, after.substr(0, after.find(' '))));
  }
}

void add_problem_options(CLI::App& command, const Operation& operation, ProblemRequest& request) {
  const std::string group = "Problem";
  const auto add = [&](const std::string& name, const std::string& value, const std::string& help) {
    const std::string option = option_of(name);  // and its earlier spelling
    command
        .add_option_function<std::string>(
            option == "--" + name ? option : option + ",--" + name,
            [&request, name](const std::string& text) { request.values.emplace_back(name, text); },
            help)
        ->type_name(value)
        ->group(group);
  };
  for (const auto& dimension : operation.dimensions) {
    add(dimension.name, "N",
        dimension.fallback.empty() ? dimension.help + " (required)"
                                   : fmt::format("{} [{}]", dimension.help, dimension.fallback));
  }
  for (const auto& earlier : operation.renamed) {
    if (command.get_option_no_throw("--" + earlier.old_name) != nullptr) continue;
    add(earlier.old_name, "VALUE", "former spelling");
    command.get_option("--" + earlier.old_name)->group("");
  }
  command
      .add_option("--dtype", request.dtype,
                  fmt::format("type of the inputs: {} [{}]", input_types_text(operation),
                              to_string(operation.dtypes[0].in)))
      ->group(group);
  command
      .add_option("--out-dtype", request.out_dtype,
                  fmt::format("type of the output: {} [the first]", output_types_text(operation)))
      ->group(group);
  if (const auto& other = operation.notation) {
    add(other->name, other->usual + "|" + other->value,
        fmt::format("{} [{}]", other->help, other->usual));
  }
  for (const auto& attribute : operation.attributes) {
    add(attribute.name, value_name(attribute),
        fmt::format("{}: {} [{}]", attribute.help, values_text(attribute), attribute.fallback));
  }
}

}  // namespace greta::tuner::cli
