#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Attributes of a problem: name and value, without those that have their default.
using AttributeValues = std::vector<std::pair<std::string, std::string>>;

/// The most work of a problem that is drawn: milliseconds on a CPU, its reference included.
struct WorkLimit {
  double flops = 8e6;
  double bytes = 512 << 10;

  /// Operands may have some more bytes than work reads and writes: caches and tables of which
  /// little is used are drawn, filled and compared all the same.
  bool allows(const Operation& operation, const Problem& problem) const;
};

/// A small problem of these types and attributes, with random extents and strides: extents are
/// tiny, whole tiles, or anything; now and then one is long and the others are short, so that it
/// can be cut into many parts. Where `part` is not 0, many are made of parts of this length, with
/// and without a rest. check_problem() may reject it: extents may not fit each other.
Problem random_problem(const Operation& operation, const DTypes& types, AttributeValues attributes,
                       const WorkLimit& limit, std::mt19937_64& random, std::int64_t part = 0);

/// Threads of all launches: what a plan costs where each has hardly anything to do.
std::uint64_t launched_threads(const LaunchPlan& plan);

/// Whether the dimension has so few extents that each is a case of its own, like a flag.
bool has_few_extents(const Dimension& dimension);

}  // namespace greta::kernels
