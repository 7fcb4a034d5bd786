#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/candidates.hpp"

namespace greta::kernels {

/// What kernels of an operation may treat as a case of its own, as text that begins with a variant:
///
///     tiled f16 to f32        element types
///     tiled BM=64             the value of a parameter
///     tiled layout=nt         the value of an attribute, or of a dimension that has few
///     held x_stride apart     rows that are packed, or apart
///     vector kv_heads other   a dimension that has its fallback's extent, or another (same, other)
///     tiled m by BM=64 rest   a Division: whole parts; parts and a rest; less than one part
///     gemv k rest             the same, where the part is made of several parameters
using Feature = std::string;

/// Those of which a choice has one for each of a variant's divisions; none where a part is of
/// length
/// 1. `part` is a value of the parameter that makes it, or Division::part.
std::vector<Feature> cases(std::string_view variant, const Division& division, std::int64_t part);

/// Those that a choice has.
std::vector<Feature> features(const Operation& operation, const Candidate& choice);

/// Those that some problem has on a device, of one variant where `variant` is not empty. They
/// follow from the operation's types, attributes, dimensions and divisions, and from the values of
/// parameters that valid configurations of the operation's usual sizes and of random problems have.
std::set<Feature> features_on(const Operation& operation, const DeviceInfo& device,
                              std::string_view variant);

/// How many of the features that there are on a device were met.
class Coverage {
 public:
  Coverage(const Operation& operation, const DeviceInfo& device, std::string_view variant)
      : operation_(operation), all_(features_on(operation, device, variant)) {}

  void add(const Candidate& choice);
  std::size_t all() const { return all_.size(); }
  std::size_t met() const { return all_.size() - missing().size(); }
  /// In alphabetical order.
  std::vector<Feature> missing() const;
  /// Features that were met though features_on() does not list them: it lacks something then.
  std::vector<Feature> unlisted() const;

 private:
  const Operation& operation_;
  std::set<Feature> all_, met_;
};

}  // namespace greta::kernels
