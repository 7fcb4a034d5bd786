#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Attributes of a problem as names and values, without those that have their default.
using AttributeValues = std::vector<std::pair<std::string, std::string>>;

/// Limits on the work of a random problem. It and its reference take milliseconds on a CPU.
struct WorkLimit {
  double flops = 8e6;
  double bytes = 512 << 10;

  /// Returns whether the work is within the limits, every element is checked, and the operands have
  /// at most 4 * bytes. Caches and tables may exceed the bytes that the kernel accesses, but they
  /// are filled and compared as a whole.
  bool allows(const Operation& operation, const Problem& problem) const;
};

/// Returns up to 32 whole parts, half of the time 1, 2, 4 … or 32, or these and a rest, which often
/// is some eighths of a part, or one or two elements more or less than parts, or at most one part.
std::int64_t extent_in_parts(std::int64_t part, std::mt19937_64& random);

/// Draws a small problem of these types and attributes with random extents and strides. Extents are
/// tiny, multiples of tile sizes, or arbitrary. Sometimes one extent is long and the others are
/// short, so that it can be divided into many parts. If `part` is not 0, many extents consist of
/// parts of this length, with or without a rest. check_problem() may reject the result if the
/// extents are inconsistent.
Problem random_problem(const Operation& operation, const DTypes& types, AttributeValues attributes,
                       const WorkLimit& limit, std::mt19937_64& random, std::int64_t part = 0);

/// Returns a problem with another extent of one dimension and with other strides, like those of
/// random_problem(). The extent is sometimes the same, where attributes were changed before.
Problem varied_problem(const Operation& operation, Problem problem, const WorkLimit& limit,
                       std::mt19937_64& random, std::int64_t part = 0);

/// Gives the attributes for which a problem is refused their defaults, one after the other.
void drop_refused_attributes(const Operation& operation, Problem& problem);

/// Returns the number of threads of all launches, which determines the cost of a plan whose threads
/// do little work.
std::uint64_t launched_threads(const LaunchPlan& plan);

/// Returns whether the dimension has so few extents that each is a separate feature, like a flag.
bool has_few_extents(const Dimension& dimension);

}  // namespace greta::kernels
