#include "tuner/bench/same_operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/model/problem_rules.hpp"

namespace greta::tuner {
namespace {

/// Extents of the problem on which references are compared.
constexpr std::int64_t most_extent = 24;

std::string names_of(const Problem& problem) {
  std::vector<std::string> names;
  for (const auto& [name, extent] : problem.dims) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string spec_text(const TensorSpec& spec) {
  return fmt::format("{} ({} x {} {})", spec.name, spec.rows, spec.cols, to_string(spec.dtype));
}

/// Returns the problem with smaller extents, or itself if these are not valid.
Problem reduced(const Operation& operation, const Problem& problem) {
  Problem small = problem;
  for (auto& [name, extent] : small.dims) extent = std::min(extent, most_extent);
  return check_problem(operation, small) ? small : problem;
}

/// Returns the inputs of `own` with the elements of the other operation's.
Result<std::vector<HostTensor>> taken_over(const Operation& operation,
                                           const std::vector<HostTensor>& inputs,
                                           const Operation& own, const Problem& own_problem,
                                           std::uint64_t seed) {
  std::vector<HostTensor> taken = own.inputs(own_problem, seed);
  if (taken.size() != inputs.size()) {
    return invalid_argument(fmt::format("it has {} operands that are read, {} has {}", taken.size(),
                                        operation.name, inputs.size()));
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const TensorSpec &mine = taken[i].spec, &theirs = inputs[i].spec;
    if (mine.dtype != theirs.dtype || taken[i].data.size() != inputs[i].data.size()) {
      return invalid_argument(fmt::format("its operand {} is not {} of {}", spec_text(mine),
                                          spec_text(theirs), operation.name));
    }
    taken[i].data = inputs[i].data;
  }
  return taken;
}

Result<std::vector<std::vector<Expected>>> results_of(const Operation& operation,
                                                      const Problem& problem,
                                                      const std::vector<HostTensor>& inputs,
                                                      std::uint64_t seed) {
  if (!operation.reference) {
    return invalid_argument(operation.name + ": its reference runs on the device only");
  }
  const auto reference = operation.reference(problem, inputs, seed);
  auto expected = reference->expected();
  if (!expected) {
    return invalid_argument(
        fmt::format("{}: its reference does not compute every element", operation.name));
  }
  return *std::move(expected);
}

}  // namespace

Result<Problem> same_problem(const Operation& operation, const Problem& problem,
                             const Operation& own) {
  ProblemRequest request;
  const auto has = [&](const std::string& name) {
    return std::any_of(own.dimensions.begin(), own.dimensions.end(),
                       [&](const Dimension& dimension) { return dimension.name == name; });
  };
  for (const auto& [name, extent] : problem.dims) {
    if (has(name)) {
      request.values.emplace_back(name, std::to_string(extent));
    } else if (extent != 1) {
      return invalid_argument(fmt::format("{} has no dimension {}, which is {} in {}", own.name,
                                          name, extent, operation.name));
    }
  }
  for (const Dimension& dimension : own.dimensions) {
    if (dimension.fallback.empty() && problem.dim(dimension.name, 0) == 0) {
      return invalid_argument(fmt::format("{} needs a dimension {}; {} has {}", own.name,
                                          dimension.name, operation.name, names_of(problem)));
    }
  }
  return make_problem(own, request);
}

Result<void> check_same(const Operation& operation, const Problem& problem, const Operation& own,
                        std::uint64_t seed) {
  const Problem small = reduced(operation, problem);
  const auto own_small = same_problem(operation, small, own);
  if (!own_small) return own_small.failure();
  const auto inputs = operation.inputs(small, seed);
  const auto own_inputs = taken_over(operation, inputs, own, *own_small, seed);
  if (!own_inputs) return own_inputs.failure();
  const auto theirs = results_of(operation, small, inputs, seed);
  if (!theirs) return theirs.failure();
  const auto mine = results_of(own, *own_small, *own_inputs, seed);
  if (!mine) return mine.failure();
  if (mine->size() != theirs->size()) {
    return invalid_argument(
        fmt::format("it has {} outputs, {} has {}", mine->size(), operation.name, theirs->size()));
  }
  for (std::size_t o = 0; o < mine->size(); ++o) {
    const auto &a = (*theirs)[o], &b = (*mine)[o];
    if (a.size() != b.size()) {
      return invalid_argument(fmt::format("an output has {} elements, that of {} has {}", b.size(),
                                          operation.name, a.size()));
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::abs(a[i].value - b[i].value) <= a[i].bound + b[i].bound) continue;
      return invalid_argument(
          fmt::format("it computes something else: of {}, element {} is {:.9g}, by its reference "
                      "{:.9g}",
                      small.key(), i, a[i].value, b[i].value));
    }
  }
  return {};
}

}  // namespace greta::tuner
