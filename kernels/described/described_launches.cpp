#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/described/described_extents.hpp"
#include "kernels/planning/plan.hpp"

namespace greta::kernels::described {
namespace {

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

Alternative space(const Extents& extents, const DeviceInfo& device) {
  const Description& d = extents.shared->description;
  Alternative a{"described", {}, {}};
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

/// The parameters as macros, then the sources.
std::string rendered(const Extents& extents, const std::string& sources, const Config& config) {
  std::string text;
  for (const DescribedParameter& p : extents.shared->description.parameters) {
    const FormulaValue value = value_of(p, config[p.name]);
    const std::string* const word = value.word();
    text += fmt::format("#define {} {}\n", p.name,
                        word != nullptr ? *word : std::to_string(value.integer()));
    if (word == nullptr) continue;
    for (const FormulaValue& one : p.values) {
      const bool name = std::all_of(one.word()->begin(), one.word()->end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
      });
      if (name)
        text += fmt::format("#define {}_IS_{} {}\n", p.name, *one.word(), one == value ? 1 : 0);
    }
  }
  return text + "#line 1\n" + sources;
}

LaunchPlan plan(const Extents& extents, const DeviceInfo& device, const Config& config) {
  return plan_of(extents, extents.shared->description.launches, extents.shared->text,
                 device.language, config);
}

}  // namespace

LaunchPlan plan_of(const Extents& extents, const std::vector<DescribedLaunch>& launches,
                   const std::string& text, Language language, const Config& config) {
  const Description& d = extents.shared->description;
  LaunchPlan plan;
  for (const DescribedLaunch& described : launches) {
    Launch launch;
    launch.source = plan.sources.size();
    for (const std::string& name : described.arguments) {
      launch.arguments.push_back(argument(extents, name, config));
    }
    KernelSource source;
    source.name = fmt::format("{}/{}", d.name, described.entry);
    source.language = language;
    source.text = rendered(extents, text, config);
    source.entry = described.entry;
    source.options = d.options;
    source.argument_bytes = block_bytes(launch.arguments);
    for (std::size_t i = 0; i < 3; ++i) {
      source.block[i] =
          static_cast<std::uint32_t>(evaluate(extents, described.workgroup[i], &config)->integer());
      launch.grid[i] =
          static_cast<std::uint32_t>(evaluate(extents, described.grid[i], &config)->integer());
    }
    source.dynamic_shared_bytes =
        static_cast<std::uint32_t>(evaluate(extents, described.shared_bytes, &config)->integer());
    plan.sources.push_back(std::move(source));
    plan.launches.push_back(std::move(launch));
  }
  plan.workspace_bytes = static_cast<std::uint64_t>(
      integer(extents, d.workspace_bytes, &config, 0, std::numeric_limits<std::int64_t>::max())
          .value_or(0));
  return plan;
}

std::vector<Config> defaults_of(const Extents& extents) {
  const Description& d = extents.shared->description;
  std::vector<Config> configs;
  for (const auto& values : d.defaults) {
    Config config{"described", {}};
    for (std::size_t i = 0; i < values.size(); ++i) {
      config.values.emplace_back(d.parameters[i].name, number_of(d.parameters[i], values[i]));
    }
    configs.push_back(std::move(config));
  }
  if (!configs.empty()) return configs;
  for (const std::size_t part : {2U, 4U, 64U}) {
    Config config{"described", {}};
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
