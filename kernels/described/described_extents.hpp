#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kernels/described/described_operation.hpp"
#include "kernels/model/launch_plan.hpp"

/// What the functions of a described operation share.
namespace greta::kernels::described {

/// What all functions of a described operation share.
struct Shared {
  Description description;
  std::string text, reference_text;         // of all sources, one after the other
  DescribedFiles files;                     // contents of operands and golden outputs
  std::shared_ptr<const ValueWords> words;  // of all parameters that have words; null: none
};

/// Returns a description with the texts of its sources and the contents of its operands. Fails with
/// `invalid_argument` if a file is missing.
Result<std::shared_ptr<const Shared>> shared_of(Description description,
                                                const DescribedFiles& files);
/// Makes the operation without what checks results.
Operation operation_of(const std::shared_ptr<const Shared>& shared);

/// What variants read: the extents, which formulas know by name.
struct Extents {
  std::shared_ptr<const Shared> shared;
  std::map<std::string, FormulaValue> values;
};

/// The number of a parameter's value in configurations, and the value of a number.
int number_of(const DescribedParameter& parameter, const FormulaValue& value);
FormulaValue value_of(const DescribedParameter& parameter, int number);

/// The most steps that one formula of a launch or a constraint takes.
constexpr std::int64_t most_steps = 16384;

/// Evaluates a formula with these extents and a configuration's parameters. Without a
/// configuration, a parameter's name stands for the list of its values, as sizes in T1 mean it.
/// Fails with the place of the formula and the values that it reads. `steps` is the number of steps
/// it may take, and after the call what is left of them.
Result<FormulaValue> evaluate(const Extents& extents, const Formula& formula, const Config* config,
                              std::int64_t& steps);
Result<FormulaValue> evaluate(const Extents& extents, const Formula& formula, const Config* config);
/// Returns "my.jsonc: line 3, column 5, grid: MESSAGE".
std::string at_place(const Extents& extents, const Formula& formula, const std::string& message);
/// Returns "n // 2 is 500 with n=1000", or the place and the reason why it has no value.
std::string shown(const Extents& extents, const Formula& formula, const Config* config);
/// Whether the formula reads parameters, so that its value depends on the configuration.
bool reads_parameters(const Extents& extents, const Formula& formula);
/// Returns a scalar's value in its type's bytes. Fails where the type does not have the value.
Result<Argument> scalar_argument(const Extents& extents, const DescribedScalar& scalar,
                                 const Config* config);
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
/// Sets about a third of the elements that are filled with random numbers to the ends of their
/// range and to 0, where the range has it.
void harden(const Shared& shared, std::vector<HostTensor>& inputs, std::uint64_t seed);

/// Returns the tuned kernel's launches, or those of the reference's, of a valid configuration.
enum class Which { tuned, reference };
LaunchPlan plan_of(const Extents& extents, Which which, const DeviceInfo& device,
                   const Config& config);
/// Returns the defaults of the description, else the middle, a lower and the first value of each
/// parameter.
std::vector<Config> defaults_of(const Extents& extents);
Extents extents_of(const std::shared_ptr<const Shared>& shared, const Problem& problem);

/// The only variant: the space and the launches of the description.
Variant variant();

}  // namespace greta::kernels::described
