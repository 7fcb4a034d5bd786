#include "tuner/compile/kernel_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/catalog.hpp"
#include "kernels/reference/findings.hpp"
#include "tuner/compile/element.hpp"

namespace greta::tuner {
namespace {

/// Returns the workspace with the contents that plans rely on: zeros, which every run must restore,
/// then arbitrary data.
CaseBuffer workspace(std::size_t bytes, std::size_t zeroed_bytes) {
  constexpr Expected zero{0, 0}, anything{0, std::numeric_limits<double>::infinity()};
  CaseBuffer buffer;
  buffer.name = "workspace";
  buffer.bytes = (bytes + 3) / 4 * 4;
  buffer.zeroed_bytes = zeroed_bytes;
  if (zeroed_bytes == 0) return buffer;
  buffer.data.assign(buffer.bytes, buffer.fill);
  std::fill_n(buffer.data.begin(), zeroed_bytes, std::byte{0});
  buffer.dtype = "u32";
  buffer.expected.assign(buffer.bytes / 4, anything);
  std::fill_n(buffer.expected.begin(), zeroed_bytes / 4, zero);
  return buffer;
}

/// Returns the operands, with new data in inputs and no expected values yet.
std::vector<CaseBuffer> drawn_operands(const std::vector<TensorSpec>& specs,
                                       std::vector<HostTensor> inputs) {
  std::vector<CaseBuffer> buffers;
  auto input = inputs.begin();
  for (const TensorSpec& spec : specs) {
    CaseBuffer buffer;
    buffer.name = spec.name;
    buffer.bytes = spec.bytes();
    buffer.offset = bytes_of(spec.dtype, static_cast<std::size_t>(spec.offset));
    buffer.dtype = to_string(spec.dtype);
    if (spec.role != Role::output) buffer.data = std::move((input++)->data);
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

/// Returns what an element of an output is before a kernel writes it: all bits are set, which is
/// NaN in floating-point types.
double unwritten(DType type) {
  if (traits(type).kind == DTypeKind::floating) return std::numeric_limits<double>::quiet_NaN();
  return traits(type).has_sign ? -1 : std::exp2(traits(type).bits) - 1;
}

/// Returns the expected value of every element in memory: nothing is written between rows.
std::vector<Expected> in_memory(const TensorSpec& spec, std::vector<Expected> elements) {
  if (spec.contiguous()) return elements;
  const Expected untouched{unwritten(spec.dtype), 0};
  std::vector<Expected> memory(static_cast<std::size_t>(spec.span()), untouched);
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    std::copy_n(elements.begin() + row * spec.cols, spec.cols,
                memory.begin() + spec.row_start(row));
  }
  return memory;
}

/// Sets the expected values of the outputs among the operands.
void expect(const std::vector<TensorSpec>& specs, std::vector<std::vector<Expected>> expected,
            std::vector<CaseBuffer>& operands) {
  auto output = expected.begin();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role != Role::input)
      operands[i].expected = in_memory(specs[i], std::move(*output++));
  }
}

/// Returns the operands of a problem with data and expected values.
std::vector<CaseBuffer> operand_buffers(const Operation& operation, const Problem& problem,
                                        std::uint64_t seed) {
  const auto specs = operation.tensors(problem);
  auto inputs = operation.inputs(problem, seed);
  auto expected = operation.reference(problem, inputs, seed)->expected().value();
  auto buffers = drawn_operands(specs, std::move(inputs));
  expect(specs, std::move(expected), buffers);
  return buffers;
}

/// `workspace` is its position among the buffers.
CaseArgument case_argument(const Argument& argument, std::size_t workspace) {
  if (const auto* operand = std::get_if<OperandArgument>(&argument)) {
    return CaseAddress{operand->tensor, 0};
  }
  if (const auto* place = std::get_if<WorkspaceArgument>(&argument)) {
    return CaseAddress{workspace, place->offset};
  }
  if (const auto* number = std::get_if<std::uint32_t>(&argument)) return *number;
  if (const auto* number = std::get_if<float>(&argument)) return *number;
  return std::get<std::uint64_t>(argument);  // check_plan_of_case() refuses tensor maps
}

}  // namespace

Result<void> check_case(const Operation& operation, const Problem& problem) {
  const auto fully_checked = operation.fully_checked;
  if (fully_checked == nullptr || fully_checked(problem)) return {};
  return Failure{Status::invalid_argument,
                 fmt::format("{}: too large for a reference of every element", problem.key()),
                 {}};
}

Result<void> check_plan_of_case(const LaunchPlan& plan) {
  for (const KernelSource& source : plan.sources) {
    if (source.call) {
      return Failure{
          Status::invalid_argument,
          source.name + ": a vendor's library computes it, which has no kernels to write",
          {}};
    }
    if (!source.constants.empty()) {
      return Failure{Status::invalid_argument,
                     fmt::format("{}: its variable {} in constant memory is written before the "
                                 "launch, which is not part of what is written",
                                 source.name, source.constants.front()),
                     {}};
    }
  }
  for (const Launch& launch : plan.launches) {
    if (std::none_of(launch.arguments.begin(), launch.arguments.end(),
                     [](const Argument& argument) {
                       return std::holds_alternative<TensorMapArgument>(argument);
                     })) {
      continue;
    }
    return Failure{Status::invalid_argument,
                   plan.sources[launch.source].name +
                       ": it takes tensor maps, which only the driver can write",
                   {}};
  }
  return {};
}

KernelCase make_unchecked_case(const Operation& operation, const CompiledChoice& compiled,
                               std::vector<HostTensor> inputs) {
  const auto& [choice, architecture, plan, kernels] = compiled;
  const auto& [problem, config] = choice;
  KernelCase made;
  made.op = problem.op;
  made.problem = problem.key();
  made.config = config.text();
  made.architecture = architecture;
  made.language = plan.sources.front().language;
  for (const CompiledKernel& kernel : kernels) made.code_objects.push_back(kernel.code_object);

  made.buffers = drawn_operands(operation.tensors(problem), std::move(inputs));
  const std::size_t operands = made.buffers.size();
  if (plan.workspace_bytes > 0) {
    made.buffers.push_back(workspace(plan.workspace_bytes, plan.zeroed_bytes));
  }
  for (const Launch& launch : plan.launches) {
    const KernelSource& source = plan.sources[launch.source];
    CaseLaunch& made_launch = made.launches.emplace_back();
    made_launch.code_object = launch.source;
    made_launch.kernel = source.entry;
    made_launch.grid = launch.grid;
    made_launch.block = source.block;
    made_launch.dynamic_shared_bytes = source.dynamic_shared_bytes;
    made_launch.subgroup_size = source.required_subgroup_size;
    for (const Argument& argument : launch.arguments) {
      made_launch.arguments.push_back(case_argument(argument, operands));
    }
  }
  return made;
}

KernelCase make_case_of(const Operation& operation, CompiledChoice compiled,
                        std::vector<HostTensor> inputs,
                        std::vector<std::vector<Expected>> expected) {
  if (compiled.kernels.empty() || !check_plan_of_case(compiled.plan)) {
    compiled.plan.launches.clear();
    compiled.kernels.clear();
  }
  KernelCase made = make_unchecked_case(operation, compiled, std::move(inputs));
  expect(operation.tensors(compiled.choice.problem), std::move(expected), made.buffers);
  return made;
}

Result<KernelCase> make_case(const Operation& operation, const CompiledChoice& compiled,
                             std::uint64_t seed) {
  const Problem& problem = compiled.choice.problem;
  if (auto possible = check_case(operation, problem); !possible) return possible.failure();
  if (auto possible = check_plan_of_case(compiled.plan); !possible) return possible.failure();
  auto inputs = operation.inputs(problem, seed);
  auto expected = operation.reference(problem, inputs, seed)->expected().value();
  KernelCase made = make_unchecked_case(operation, compiled, std::move(inputs));
  expect(operation.tensors(problem), std::move(expected), made.buffers);
  made.seed = seed;
  return made;
}

Result<void> fill_case(const Catalog& catalog, KernelCase& bare, std::uint64_t seed) {
  const auto refuse = [&](const std::string& why) {
    return Failure{Status::invalid_argument, fmt::format("{}: {}", bare.problem, why), {}};
  };
  const auto problem = catalog.read(bare.problem);
  if (!problem) return problem.failure();
  const Operation& operation = catalog.at(problem->op);
  if (auto possible = check_case(operation, *problem); !possible) return possible;
  auto drawn = operand_buffers(operation, *problem, seed);
  for (CaseBuffer& buffer : bare.buffers) {
    if (buffer.name == "workspace") {
      if (buffer.zeroed_bytes > buffer.bytes) return refuse("more zeros than workspace");
      // A whole case has its zeros in the data.
      if (buffer.data.empty()) buffer = workspace(buffer.bytes, buffer.zeroed_bytes);
      continue;
    }
    const auto same = std::find_if(drawn.begin(), drawn.end(), [&](const CaseBuffer& other) {
      return other.name == buffer.name && other.bytes == buffer.bytes;
    });
    if (same == drawn.end()) return refuse("its operands are other ones in this GRETA");
    buffer = std::move(*same);
  }
  bare.seed = seed;
  return {};
}

std::string check_buffer(const CaseBuffer& buffer, std::span<const std::byte> contents) {
  std::size_t wrong = 0, worst = 0;
  double excess = -1;
  for (std::size_t i = 0; i < buffer.expected.size(); ++i) {
    const double got = load_element(buffer.dtype, contents.data(), i);
    const Expected& want = buffer.expected[i];
    if (kernels::accepts(want, got)) continue;
    ++wrong;
    double ratio = std::abs(got - want.value) / want.bound;
    if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
    if (ratio <= excess) continue;
    excess = ratio;
    worst = i;
  }
  if (wrong == 0) return {};
  const Expected& want = buffer.expected[worst];
  return fmt::format(
      "{}: {} of {} outside the bound, worst at {}: {:.9g}, expected {:.9g} +- {:.3g}", buffer.name,
      wrong, buffer.expected.size(), worst, load_element(buffer.dtype, contents.data(), worst),
      want.value, want.bound);
}

}  // namespace greta::tuner
