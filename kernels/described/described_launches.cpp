#include <fmt/format.h>

#include <algorithm>
#include <bit>

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

void add_launch_limits(const Extents& extents, const DeviceInfo& device,
                       const DescribedLaunch& launch, std::vector<Constraint>& list) {
  const auto threads = [extents, device, workgroup = launch.workgroup](const Config& c) {
    std::int64_t all = 1;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto one = integer(extents, workgroup[i], &c, 1, device.max_workgroup_size[i]);
      if (!one) return false;
      all *= *one;
    }
    return all <= device.max_workgroup_invocations;
  };
  list.push_back(constraint(extents, "workgroup_threads",
                            fmt::format("a workgroup of {} has 1 to {} threads", launch.entry,
                                        device.max_workgroup_invocations),
                            pointers(launch.workgroup), threads));
  const auto grid = [extents, device, groups = launch.grid](const Config& c) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (!integer(extents, groups[i], &c, 1, device.max_grid[i])) return false;
    }
    return true;
  };
  list.push_back(constraint(
      extents, "grid",
      fmt::format("the grid of {} has at least one workgroup, and no more than the device allows",
                  launch.entry),
      pointers(launch.grid), grid));
  const auto shared = [extents, device, bytes = launch.shared_bytes](const Config& c) {
    return integer(extents, bytes, &c, 0, device.shared_memory_bytes).has_value();
  };
  list.push_back(constraint(
      extents, "shared_memory",
      fmt::format("the device has {} KiB of shared memory", device.shared_memory_bytes / 1024),
      {&launch.shared_bytes}, shared));
}

/// Scalars and the workspace must have values.
void add_value_limits(const Extents& extents, std::vector<Constraint>& list) {
  const Description& d = extents.shared->description;
  for (const DescribedScalar& scalar : d.scalars) {
    const auto is_number = [extents, formula = scalar.value](const Config& c) {
      const auto value = evaluate(extents, formula, &c);
      return value && value->is_number();
    };
    list.push_back(
        constraint(extents, "scalar",
                   fmt::format("the scalar {} = {} is a number", scalar.name, scalar.value.text()),
                   {&scalar.value}, is_number));
  }
  const auto bytes = [extents, formula = d.workspace_bytes](const Config& c) {
    return integer(extents, formula, &c, 0, most_workspace_bytes).has_value();
  };
  list.push_back(constraint(
      extents, "workspace",
      fmt::format("the workspace of {} bytes is an integer up to 2^40", d.workspace_bytes.text()),
      {&d.workspace_bytes}, bytes));
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
  for (std::size_t i = 0; i < d.constraints.size(); ++i) {
    const Formula& condition = d.constraints[i].condition;
    const auto holds = [extents, condition](const Config& c) {
      const auto value = evaluate(extents, condition, &c);
      return value && value->truth();
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

Argument scalar_argument(const Extents& extents, const DescribedScalar& scalar,
                         const Config& config) {
  const auto value = evaluate(extents, scalar.value, &config);
  if (!value || !value->is_number()) {
    throw Error(fmt::format("the scalar {} has no number as its value", scalar.name));
  }
  using Type = DescribedScalar::Type;
  if (scalar.type == Type::f32) return static_cast<float>(value->real());
  if (scalar.type == Type::f64) return std::bit_cast<std::uint64_t>(value->real());
  const auto whole =
      value->is_integer() ? value->integer() : static_cast<std::int64_t>(value->real());
  if (scalar.type == Type::i64 || scalar.type == Type::u64)
    return static_cast<std::uint64_t>(whole);
  return static_cast<std::uint32_t>(whole);
}

Argument argument(const Extents& extents, const std::string& name, const Config& config) {
  const Description& d = extents.shared->description;
  for (std::size_t i = 0; i < d.operands.size(); ++i) {
    if (d.operands[i].name == name) return OperandArgument{i};
  }
  for (const DescribedScalar& scalar : d.scalars) {
    if (scalar.name == name) return scalar_argument(extents, scalar, config);
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
