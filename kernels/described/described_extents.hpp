#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kernels/described/described_operation.hpp"

/// What the functions of a described operation share.
namespace greta::kernels::described {

/// A description and the text of its sources: what all functions of its operation share.
struct Shared {
  Description description;
  std::string text;      // of all sources, one after the other
  DescribedFiles files;  // contents of operands
};

/// What variants read: the extents, which formulas know by name.
struct Extents {
  std::shared_ptr<const Shared> shared;
  std::map<std::string, FormulaValue> values;
};

/// The number of a parameter's value in configurations, and the value of a number.
int number_of(const DescribedParameter& parameter, const FormulaValue& value);
FormulaValue value_of(const DescribedParameter& parameter, int number);

/// Evaluates a formula with these extents and a configuration's parameters. Without a
/// configuration, a parameter's name stands for the list of its values, as sizes in T1 mean it.
Result<FormulaValue> evaluate(const Extents& extents, const Formula& formula, const Config* config);
/// Returns an integer from `least` to `most`, or nothing where the formula is undefined or gives
/// another value.
std::optional<std::int64_t> integer(const Extents& extents, const Formula& formula,
                                    const Config* config, std::int64_t least, std::int64_t most);

/// Returns an operand's extents; 0 where a formula has no extent.
std::vector<std::int64_t> shape_of(const Extents& extents, const DescribedOperand& operand);
std::vector<TensorSpec> tensors(const Extents& extents);
/// Checks that shapes are extents, operands have at most 2^40 elements, and files contain these.
Result<void> check(const Extents& extents);
HostTensor input(const Shared& shared, const TensorSpec& spec, std::uint64_t seed);

/// Returns launches of sources with this text; of a valid configuration.
LaunchPlan plan_of(const Extents& extents, const std::vector<DescribedLaunch>& launches,
                   const std::string& text, Language language, const Config& config);
/// Returns the defaults of the description, else the middle, a lower and the first value of each
/// parameter.
std::vector<Config> defaults_of(const Extents& extents);
/// Returns the sources of these names, one after the other.
Result<std::string> text_of(const std::vector<std::string>& names, const DescribedFiles& files);
Extents extents_of(const std::shared_ptr<const Shared>& shared, const Problem& problem);
/// Returns the elements that a file contains: all of it, or what follows the header of a .npy file.
std::string_view elements_of(std::string_view file);

/// The only variant: the space and the launches of the description.
Variant variant();

}  // namespace greta::kernels::described
