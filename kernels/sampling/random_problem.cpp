#include "kernels/sampling/random_problem.hpp"

#include <algorithm>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"

namespace greta::kernels {
namespace {

bool one_in(std::uint64_t count, std::mt19937_64& random) {
  return uniform_below(random, count) == 0;
}

std::int64_t between(std::int64_t least, std::int64_t most, std::mt19937_64& random) {
  return least + static_cast<std::int64_t>(
                     uniform_below(random, static_cast<std::uint64_t>(most - least) + 1));
}

/// Returns a tiny extent, often 1, 2 or 3, an arbitrary one, a multiple of 8 (which allows wide
/// loads), or whole tiles: few powers of two, or up to 12 blocks that loops may have in any number.
std::int64_t random_extent(std::mt19937_64& random) {
  constexpr std::int64_t tiny = 8, most = 160;
  switch (uniform_below(random, 4)) {
    case 0:
      return between(1, one_in(2, random) ? 3 : tiny, random);
    case 1:
      return between(1, most, random);
    case 2:
      return 8 * between(1, most / 8, random);
    default:
      if (one_in(2, random)) return between(1, 12, random) << between(5, 8, random);
      return between(1, 3, random) << between(3, 7, random);
  }
}

/// Returns an extent from 128 to 8192, with equal probability per power of two; often a multiple of
/// 32.
std::int64_t long_extent(std::mt19937_64& random) {
  const std::int64_t power = std::int64_t{128} << between(0, 5, random);
  const std::int64_t extent = power + between(0, power, random);
  return one_in(2, random) ? extent : extent / 32 * 32;
}

std::int64_t draw_extent(const Dimension& dimension, const Problem& so_far, std::int64_t part,
                         std::mt19937_64& random) {
  if (has_few_extents(dimension)) return between(dimension.least, dimension.most, random);
  for (const auto& [name, extent] : so_far.dims) {
    if (name == dimension.fallback && one_in(3, random)) return extent;
  }
  const auto& examples = dimension.examples;
  // Loops along extents that may be long go round all of their buffers.
  if (part > 0 && std::any_of(examples.begin(), examples.end(), [](auto x) { return x >= 100; }) &&
      one_in(2, random)) {
    return extent_in_parts(part, random);
  }
  if (!examples.empty() && !one_in(4, random)) {
    return examples[uniform_below(random, examples.size())];
  }
  return part > 0 && one_in(2, random) ? extent_in_parts(part, random) : random_extent(random);
}

/// Halves extents, the longest last, until the work is within its limit.
void shrink(Problem& problem, const Operation& operation, std::size_t longest,
            const WorkLimit& limit, std::mt19937_64& random) {
  while (!limit.allows(operation, problem)) {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < problem.dims.size(); ++i) {
      if (i != longest && problem.dims[i].second > 1 &&
          problem.dims[i].second / 2 >= operation.dimensions[i].least) {
        others.push_back(i);
      }
    }
    const std::size_t chosen =
        others.empty() ? longest : others[uniform_below(random, others.size())];
    if (chosen >= problem.dims.size() || problem.dims[chosen].second <= 1) return;
    problem.dims[chosen].second /= 2;
  }
}

/// Removes an optional dimension that has its default.
void drop_default(Problem& problem, const Operation& operation) {
  const Dimension& optional = operation.dimensions.back();
  if (!optional.optional) return;
  const auto& [last, extent] = problem.dims.back();
  if (optional.name == last && optional.fallback == std::to_string(extent)) problem.dims.pop_back();
}

/// Half of the operands that may be strided get another stride than that of packed rows; or one of
/// them alone, since many kernels need strides that are multiples of something, and few problems
/// have several of these.
void draw_strides(Problem& problem, const Operation& operation, std::mt19937_64& random) {
  std::vector<const Attribute*> strided;
  for (const Attribute& attribute : operation.attributes) {
    if (attribute.packed != nullptr && attribute.packed(problem) != 0)
      strided.push_back(&attribute);
  }
  if (strided.size() > 1 && one_in(3, random)) {
    strided = {strided[uniform_below(random, strided.size())]};
  } else {
    std::erase_if(strided, [&](const Attribute*) { return one_in(2, random); });
  }
  for (const Attribute* const attribute : strided) {
    const auto values = values_to_test(*attribute, problem);
    const std::string& value = values[uniform_below(random, values.size())];
    if (value != default_value(*attribute, problem)) {
      problem.attributes.emplace_back(attribute->name, value);
    }
  }
}

/// `even`: with extents and rows of whole vectors, as most problems of models have them.
void finish(Problem& problem, const Operation& operation, std::size_t longest,
            const WorkLimit& limit, std::mt19937_64& random, bool even) {
  shrink(problem, operation, longest, limit, random);
  for (std::size_t i = 0; even && i < problem.dims.size(); ++i) {
    auto& extent = problem.dims[i].second;
    if (extent >= 8 && !has_few_extents(operation.dimensions[i]) &&
        extent / 8 * 8 >= operation.dimensions[i].least)
      extent -= extent % 8;
  }
  drop_default(problem, operation);
  if (!even) draw_strides(problem, operation, random);
}

/// Returns the extent redrawn, a power of two, twice or half as long, by one longer or shorter, or
/// as it is.
std::int64_t varied_extent(const Dimension& dimension, std::int64_t extent, const Problem& problem,
                           std::int64_t part, std::mt19937_64& random) {
  switch (uniform_below(random, 10)) {
    case 0:
      return extent * 2;
    case 1:
      return extent / 2;
    case 2:
      return extent + (one_in(2, random) ? 1 : -1);
    case 3:
      return long_extent(random);
    case 4:  // whole lines of tiles
      return std::int64_t{128} << between(0, 5, random);
    case 5:
      return extent;
    default:
      return draw_extent(dimension, problem, part, random);
  }
}

}  // namespace

std::int64_t extent_in_parts(std::int64_t part, std::mt19937_64& random) {
  const bool any = one_in(2, random);
  const std::int64_t whole = part * (any ? between(1, 32, random) : 1 << between(0, 5, random));
  switch (uniform_below(random, 4)) {
    case 0:
      if (one_in(2, random)) return whole + part * between(1, 7, random) / 8;
      if (one_in(2, random)) return std::max<std::int64_t>(1, whole + between(-2, 2, random));
      return whole + between(0, part - 1, random);
    case 1:
      return between(1, part, random);
    default:
      return whole;
  }
}

bool WorkLimit::allows(const Operation& operation, const Problem& problem) const {
  if (operation.fully_checked && !operation.fully_checked(problem)) return false;
  const Work work = operation.work(problem);
  if (work.flops > flops || work.bytes > bytes) return false;
  double operands = 0;
  for (const TensorSpec& spec : operation.tensors(problem)) {
    operands += static_cast<double>(spec.bytes());
  }
  return operands <= 4 * bytes;
}

std::uint64_t launched_threads(const LaunchPlan& plan) {
  std::uint64_t threads = 0;
  for (const Launch& launch : plan.launches) {
    const auto& block = plan.sources[launch.source].block;
    std::uint64_t of_launch = 1;
    for (std::size_t i = 0; i < 3; ++i) of_launch *= std::uint64_t{launch.grid[i]} * block[i];
    threads += of_launch;
  }
  return threads;
}

bool has_few_extents(const Dimension& dimension) {
  return dimension.most - dimension.least < 8;
}

void drop_refused_attributes(const Operation& operation, Problem& problem) {
  for (std::size_t left = problem.attributes.size(); left > 0; --left) {
    const Result<void> good = check_problem(operation, problem);
    if (good || !good.failure().field) return;
    std::erase_if(problem.attributes,
                  [&](const auto& one) { return one.first == good.failure().field->field; });
  }
}

Problem random_problem(const Operation& operation, const DTypes& types, AttributeValues attributes,
                       const WorkLimit& limit, std::mt19937_64& random, std::int64_t part) {
  Problem problem{operation.name, types.in, types.out, std::move(attributes), {}};
  const auto& dimensions = operation.dimensions;
  const bool least = one_in(12, random);  // a single element, or nearly
  for (const Dimension& dimension : dimensions) {
    if (dimension.optional && !one_in(3, random)) continue;  // it is the last one
    const std::int64_t extent =
        least ? between(1, 2, random) : draw_extent(dimension, problem, part, random);
    problem.dims.emplace_back(dimension.name, std::clamp(extent, dimension.least, dimension.most));
  }
  std::size_t longest = problem.dims.size();
  if (!least && one_in(3, random)) {
    longest = uniform_below(random, problem.dims.size());
    auto& extent = problem.dims[longest].second;
    if (dimensions[longest].most > 8192 * 2) extent = long_extent(random);
  }
  finish(problem, operation, longest, limit, random, one_in(4, random));
  return problem;
}

Problem varied_problem(const Operation& operation, Problem problem, const WorkLimit& limit,
                       std::mt19937_64& random, std::int64_t part) {
  problem = of_packed_rows(operation, std::move(problem));
  const std::size_t varied = uniform_below(random, problem.dims.size());
  const Dimension& dimension = operation.dimensions[varied];
  auto& extent = problem.dims[varied].second;
  extent = std::clamp(varied_extent(dimension, extent, problem, part, random), dimension.least,
                      dimension.most);
  finish(problem, operation, varied, limit, random, false);
  return problem;
}

}  // namespace greta::kernels
