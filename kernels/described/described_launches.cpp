#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "kernels/described/compiler_options.hpp"
#include "kernels/described/described_extents.hpp"
#include "kernels/described/glsl_text.hpp"
#include "kernels/described/language_files.hpp"
#include "kernels/described/names.hpp"
#include "kernels/planning/plan.hpp"

namespace greta::kernels::described {
namespace {

constexpr std::int64_t most_workspace_bytes = std::int64_t{1} << 40;

/// A condition on the parameters that a formula reads.
Constraint constraint(const Extents& extents, std::string name, std::string reason,
                      const std::vector<const Formula*>& formulas,
                      std::function<bool(const Config&)> holds) {
  std::vector<std::string> parameters;
  for (const Formula* formula : formulas) {
    for (const std::string& read : formula->names()) {
      const bool known = std::find(parameters.begin(), parameters.end(), read) != parameters.end();
      if (extents.values.count(read) == 0 && !known) parameters.push_back(read);
    }
  }
  return {std::move(name), std::move(reason), {std::move(parameters), std::move(holds)}};
}

std::vector<const Formula*> pointers(const std::array<Formula, 3>& formulas) {
  return {&formulas[0], &formulas[1], &formulas[2]};
}

/// Tells what is wrong with one of these formulas, none of which may be below `least` or above the
/// `most` of its place.
std::function<std::string(const Config&)> explanation(const Extents& extents, std::string reason,
                                                      const std::array<Formula, 3>& formulas,
                                                      std::int64_t least,
                                                      const std::array<std::int64_t, 3>& most) {
  return [extents, reason = std::move(reason), formulas, least, most](const Config& c) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (integer(extents, formulas[i], &c, least, most[i])) continue;
      return at_place(extents, formulas[i],
                      fmt::format("{}, and {}", reason, shown(extents, formulas[i], &c)));
    }
    return reason;
  };
}

/// A condition on three formulas: each an integer from `least` to its `most`.
Constraint limit(const Extents& extents, std::string name, const std::string& reason,
                 const std::array<Formula, 3>& formulas, std::int64_t least,
                 const std::array<std::int64_t, 3>& most, std::int64_t most_product) {
  const auto holds = [extents, formulas, least, most, most_product](const Config& c) {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto one = integer(extents, formulas[i], &c, least, most[i]);
      if (!one || (*one > 0 && product > most_product / *one)) return false;
      product *= *one;
    }
    return true;
  };
  Constraint one = constraint(extents, std::move(name), reason, pointers(formulas), holds);
  one.explain = explanation(extents, reason, formulas, least, most);
  return one;
}

constexpr std::int64_t any_product = std::numeric_limits<std::int64_t>::max();

void add_launch_limits(const Extents& extents, const DeviceInfo& device,
                       const DescribedLaunch& launch, std::vector<Constraint>& list) {
  const auto extents_of = [](const auto& numbers) {
    return std::array<std::int64_t, 3>{numbers[0], numbers[1], numbers[2]};
  };
  const auto threads = extents_of(device.max_workgroup_size);
  list.push_back(limit(extents, "workgroup_threads",
                       fmt::format("a workgroup of {} has 1 to {} threads", launch.entry,
                                   device.max_workgroup_invocations),
                       launch.workgroup, 1, threads, device.max_workgroup_invocations));
  const auto groups = extents_of(device.max_grid);
  list.push_back(limit(extents, "grid",
                       fmt::format("the grid of {} has 1 to {} x {} x {} workgroups", launch.entry,
                                   groups[0], groups[1], groups[2]),
                       launch.grid, 1, groups, any_product));
  const Formula none = Formula::constant({std::int64_t{0}});
  const std::int64_t bytes = device.shared_memory_bytes;
  list.push_back(
      limit(extents, "shared_memory",
            fmt::format("the shared memory of {} has 0 to {} bytes", launch.entry, bytes),
            {launch.shared_bytes, none, none}, 0, {bytes, 0, 0}, any_product));
}

/// Scalars and the workspace must have values.
void add_value_limits(const Extents& extents, std::vector<Constraint>& list) {
  const Description& d = extents.shared->description;
  for (const DescribedScalar& scalar : d.scalars) {
    const auto fits = [extents, scalar](const Config& c) {
      return static_cast<bool>(scalar_argument(extents, scalar, &c));
    };
    list.push_back(constraint(extents, "scalar",
                              fmt::format("the type of the scalar {} has its value", scalar.name),
                              {&scalar.value}, fits));
    list.back().explain = [extents, scalar](const Config& c) {
      return scalar_argument(extents, scalar, &c).failure().message;
    };
  }
  const Formula none = Formula::constant({std::int64_t{0}});
  list.push_back(limit(extents, "workspace", "the workspace has 0 to 2^40 bytes",
                       {d.workspace_bytes, none, none}, 0, {most_workspace_bytes, 0, 0},
                       any_product));
}

/// The most steps that the conditions of one space take, some seconds.
constexpr std::int64_t most_steps_of_space = std::int64_t{1} << 27;

/// Whether a constraint of the description holds. Throws Error where its formula has no value,
/// unless an earlier constraint of the same parameters does not hold.
bool constraint_holds(const Extents& extents, std::size_t number, const Config& config,
                      std::atomic<std::int64_t>& left) {
  const auto& constraints = extents.shared->description.constraints;
  std::int64_t steps = most_steps;
  const auto value = evaluate(extents, constraints[number].condition, &config, steps);
  if ((left -= most_steps - steps) < 0) {
    throw Error(invalid_argument(at_place(
        extents, constraints[number].condition,
        fmt::format("the constraints take more than {} steps; constraints that read few parameters "
                    "each, and fewer values, take fewer",
                    most_steps_of_space))));
  }
  if (value) return value->truth();
  for (std::size_t i = 0; i < number; ++i) {
    const Formula& earlier = constraints[i].condition;
    const bool known =
        std::all_of(earlier.names().begin(), earlier.names().end(), [&](const std::string& name) {
          return extents.values.count(name) > 0 || config.has(name);
        });
    if (!known) continue;
    const auto guard = evaluate(extents, earlier, &config);
    if (guard && !guard->truth()) return false;
  }
  throw Error(value.failure());
}

Alternative space(const Extents& extents, const DeviceInfo& device) {
  const Description& d = extents.shared->description;
  Alternative a{"described", {}, {}};
  a.words = extents.shared->words;
  for (const DescribedParameter& p : d.parameters) {
    Parameter parameter{p.name, {}};
    for (const FormulaValue& value : p.values) parameter.values.push_back(number_of(p, value));
    a.parameters.push_back(std::move(parameter));
  }
  const bool glsl = d.language == SourceLanguage::glsl;
  a.constraints.push_back({"language", fmt::format("the device runs no {}", to_string(d.language)),
                           (device.language == Language::glsl) == glsl});
  const auto left = std::make_shared<std::atomic<std::int64_t>>(most_steps_of_space);
  for (std::size_t i = 0; i < d.constraints.size(); ++i) {
    const Formula& condition = d.constraints[i].condition;
    const auto holds = [extents, i, left](const Config& c) {
      return constraint_holds(extents, i, c, *left);
    };
    a.constraints.push_back(constraint(extents, fmt::format("constraint_{}", i + 1),
                                       d.constraints[i].reason, {&condition}, holds));
  }
  for (const DescribedLaunch& launch : d.launches) {
    add_launch_limits(extents, device, launch, a.constraints);
  }
  add_value_limits(extents, a.constraints);
  return a;
}

Argument argument(const Extents& extents, const std::string& name, const Config& config) {
  const Description& d = extents.shared->description;
  for (std::size_t i = 0; i < d.operands.size(); ++i) {
    if (d.operands[i].name == name) return OperandArgument{i};
  }
  for (const DescribedScalar& scalar : d.scalars) {
    if (scalar.name == name) return scalar_argument(extents, scalar, &config).value();
  }
  return WorkspaceArgument{0};
}

/// A parameter's value as sources see it.
std::string macro_text(const FormulaValue& value) {
  return value.word() != nullptr ? *value.word() : std::to_string(value.integer());
}

/// Removes "#pragma unroll NAME" where NAME is a parameter that is 0: no factor is asked for.
void remove_unroll(std::string& text, const std::string& name) {
  const std::string pragma = "#pragma unroll " + name;
  for (std::size_t at = 0; (at = text.find(pragma, at)) != std::string::npos; ++at) {
    const std::size_t end = at + pragma.size();
    if (end == text.size() || !is_in_name(text[end])) text.erase(at, pragma.size());
  }
}

/// The parameters as macros. Pragmas of `sources` that ask for nothing are removed.
std::string macros(const Extents& extents, std::string& sources, const Config& config) {
  std::string text;
  for (const DescribedParameter& p : extents.shared->description.parameters) {
    const FormulaValue value = value_of(p, config[p.name]);
    text += fmt::format("#define {} {}\n", p.name, macro_text(value));
    if (value.is_integer() && value.integer() == 0) remove_unroll(sources, p.name);
    if (value.word() == nullptr) continue;
    for (const FormulaValue& one : p.values) {
      if (!std::all_of(one.word()->begin(), one.word()->end(), is_in_name)) continue;
      text += fmt::format("#define {}_IS_{} {}\n", p.name, *one.word(), one == value ? 1 : 0);
    }
  }
  return text;
}

/// HIP's words for compilers of AMD GPUs that have none built in.
std::string words_for(const DeviceInfo& device) {
  if (device.is_cpu() || device.vendor != "AMD") return {};
  return fmt::format("#line 1 \"GRETA's words of HIP\"\n{}",
                     described_language_files().front().text);
}

/// Names of parameters in the arguments of a template stand for their values.
std::string instantiated(const Extents& extents, const std::string& entry, const Config& config) {
  std::string text = entry.substr(0, entry.find('<'));
  for (std::size_t at = text.size(); at < entry.size();) {
    std::size_t end = at + 1;
    while (is_in_name(entry[at]) && end < entry.size() && is_in_name(entry[end])) ++end;
    const std::string word = entry.substr(at, end - at);
    const auto& parameters = extents.shared->description.parameters;
    const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                        [&](const auto& p) { return p.name == word; });
    text += parameter == parameters.end() ? word : macro_text(value_of(*parameter, config[word]));
    at = end;
  }
  return text;
}

/// Whether the text declares this variable in constant memory.
bool declares_constant(const std::string& text, const std::string& name) {
  for (std::size_t at = 0; (at = text.find("__constant__", at)) != std::string::npos; ++at) {
    const std::string declaration = text.substr(at, text.find_first_of(";=", at) - at);
    const std::size_t found = declaration.find(name);
    if (found != std::string::npos && !is_in_name(declaration[found - 1])) return true;
  }
  return false;
}

/// Binds operands to variables in constant memory. A reference of its own may lack these.
void add_constants(const Extents& extents, Which which, KernelSource& source, Launch& launch) {
  const auto& operands = extents.shared->description.operands;
  const auto specs = tensors(extents);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string& name = operands[i].constant;
    if (name.empty() || (which == Which::reference && !declares_constant(source.text, name)))
      continue;
    source.constants.push_back(name);
    launch.constants.push_back({i, specs[i].bytes()});
  }
}

LaunchPlan plan(const Extents& extents, const DeviceInfo& device, const Config& config) {
  return plan_of(extents, Which::tuned, device, config);
}

}  // namespace

LaunchPlan plan_of(const Extents& extents, Which which, const DeviceInfo& device,
                   const Config& config) {
  const Description& d = extents.shared->description;
  const bool tuned = which == Which::tuned;
  const bool glsl = (tuned ? d.language : d.reference.language) == SourceLanguage::glsl;
  std::string sources = tuned ? extents.shared->text : extents.shared->reference_text;
  const std::string defines = macros(extents, sources, config);
  const auto number = [&](const Formula& formula) {
    return static_cast<std::uint32_t>(evaluate(extents, formula, &config).value().integer());
  };
  LaunchPlan plan;
  for (const DescribedLaunch& described : tuned ? d.launches : d.reference.launches) {
    Launch launch;
    launch.source = plan.sources.size();
    for (const std::string& name : described.arguments) {
      launch.arguments.push_back(argument(extents, name, config));
    }
    KernelSource source;
    source.name = fmt::format("{}/{}", d.name, described.entry);
    source.language = device.language;
    source.options = options_for(device, d.options);
    source.argument_bytes = block_bytes(launch.arguments);
    for (std::size_t i = 0; i < 3; ++i) {
      source.block[i] = number(described.workgroup[i]);
      launch.grid[i] = number(described.grid[i]);
    }
    if (glsl) {
      source.text = glsl_text(d, defines, sources, described.entry, source.block);
    } else {
      source.text = words_for(device) + defines + sources;
      source.entry = instantiated(extents, described.entry, config);
    }
    source.dynamic_shared_bytes = number(described.shared_bytes);
    add_constants(extents, which, source, launch);
    plan.sources.push_back(std::move(source));
    plan.launches.push_back(std::move(launch));
  }
  plan.workspace_bytes = static_cast<std::uint64_t>(
      integer(extents, d.workspace_bytes, &config, 0, most_workspace_bytes).value());
  return plan;
}

std::vector<Config> defaults_of(const Extents& extents) {
  const Description& d = extents.shared->description;
  std::vector<Config> configs;
  for (const auto& values : d.defaults) {
    Config config{"described", {}, extents.shared->words};
    for (std::size_t i = 0; i < values.size(); ++i) {
      config.values.emplace_back(d.parameters[i].name, number_of(d.parameters[i], values[i]));
    }
    configs.push_back(std::move(config));
  }
  if (!configs.empty()) return configs;
  for (const std::size_t part : {2U, 4U, 64U}) {
    Config config{"described", {}, extents.shared->words};
    for (const DescribedParameter& p : d.parameters) {
      config.values.emplace_back(p.name, number_of(p, p.values[p.values.size() / part]));
    }
    configs.push_back(std::move(config));
  }
  return configs;
}

Variant variant() {
  return make_variant<Extents>(
      "described", "the kernel as its description says", space, plan,
      [](const Extents& extents, const DeviceInfo&) { return defaults_of(extents); },
      [](const Extents&, const Config&) { return std::vector<Division>{}; });
}

}  // namespace greta::kernels::described
