#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/sampling/candidates.hpp"

namespace greta::kernels {

/// A case that kernels of an operation may treat separately, as text that begins with a variant:
///
///     tiled f16 to f32        element types
///     tiled BM=64             value of a parameter
///     tiled layout=nt         value of an attribute, or of a dimension with few extents
///     held x_stride apart     rows that are packed, or apart (strided)
///     vector kv_heads other   a dimension equal to its default (same), or not (other)
///     tiled batch given       an optional dimension that is given, or not (none)
///     tiled m by BM=64 rest   a Division: whole parts; parts and a rest; less than one part
///     gemv k rest             the same, if several parameters determine the part
///     tma path packed bias    one of Variant::paths
using Feature = std::string;

/// Returns the features of one division, of which a choice has exactly one; empty for parts of
/// length 1. `part` is Division::part, or a value of the parameter that equals it.
std::vector<Feature> cases(std::string_view variant, const Division& division, std::int64_t part);

/// How an extent is divided: into whole parts, into parts and a rest, or it is less than one part.
enum class DivisionCase { whole, rest, less };
/// Returns nothing for parts of length 1, none of which can be incomplete.
std::optional<DivisionCase> case_of(const Division& division);
/// Returns log2 of the number of parts, rounded up; at most 4.
int log2_of_parts(const Division& division);
/// Returns a number that extents share if they are the same power of two, at most 256, times 1, 3
/// or a larger odd number with the same remainder modulo 4: what is left after a loop's rounds is
/// alike. Even multiples of 256 share that of the next odd one.
int remainder_class(std::int64_t extent);

/// Returns those features of a choice of this variant that depend only on the problem.
std::vector<Feature> problem_features(const Operation& operation, const Problem& problem,
                                      std::string_view variant);

/// Returns the other features of a configuration of a variant, for a problem in the form that the
/// variant reads.
std::vector<Feature> config_features(const Variant& variant, const ProblemShape& shape,
                                     const Config& config);
/// Returns the features of a choice.
std::vector<Feature> features(const Operation& operation, const Candidate& choice);

/// Returns the features that some problem has on a device. If `variant` is not empty, returns only
/// those of this variant. They are derived from the operation's types, attributes, dimensions and
/// divisions, and from the parameter values in valid configurations of typical and random problems.
std::set<Feature> features_on(const Operation& operation, const DeviceInfo& device,
                              std::string_view variant);

/// Records which of the features that exist on a device were covered.
class Coverage {
 public:
  /// The features that exist are found when they are first asked for, which may take seconds.
  Coverage(const Operation& operation, DeviceInfo device, std::string_view variant)
      : operation_(operation), device_(std::move(device)), variant_(variant) {}

  void add(const Candidate& choice);
  std::size_t all() const { return existing().size(); }
  std::size_t met() const { return all() - missing().size(); }
  /// Returns the uncovered features in alphabetical order.
  std::vector<Feature> missing() const;
  /// Returns covered features that are missing from features_on(), which is a defect of
  /// features_on().
  std::vector<Feature> unlisted() const;

 private:
  const std::set<Feature>& existing() const;

  const Operation& operation_;
  DeviceInfo device_;
  std::string variant_;
  mutable std::optional<std::set<Feature>> all_;
  std::set<Feature> met_;
};

}  // namespace greta::kernels
