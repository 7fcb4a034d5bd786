#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns whether the compiled kernels of both plans are the same. Launches and arguments may
/// differ.
bool same_kernels(const LaunchPlan& a, const LaunchPlan& b);

struct SmallProblem {
  Problem problem;
  LaunchPlan plan;
};

/// Small problems on which configurations run the same compiled kernels as on a given problem, but
/// with other cases: incomplete parts where the given problem has none, other factors, other
/// numbers of rows and heads. They expose kernels that are correct only on the given problem, e.g.
/// because it has no incomplete parts.
class SmallProblems {
 public:
  /// Prepares small problems for `problem`. Equal seeds give equal problems.
  SmallProblems(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                std::uint64_t seed);

  /// Returns at most `count` problems with plans whose kernels are those of `plan`, the plan of the
  /// given problem and `config`. Returns fewer if extents and attributes are compiled into the
  /// kernels.
  std::vector<SmallProblem> with_kernels_of(const Config& config, const LaunchPlan& plan,
                                            std::size_t count);

 private:
  /// A value of an attribute that does not change a configuration's kernels.
  struct FreeValue {
    const Attribute* attribute;
    std::string value;
  };
  std::vector<FreeValue> free_values(const Config& config, const LaunchPlan& plan) const;
  bool reaches_text(std::size_t dimension, const Config& config, const LaunchPlan& plan) const;
  void draw(const Config& config, const LaunchPlan& plan);

  const Operation& operation_;
  const DeviceInfo device_;
  const Problem problem_;
  const std::uint64_t seed_;
  /// Drawn for the first configuration, which determines what can be changed.
  std::vector<Problem> drawn_;
};

}  // namespace greta::kernels
