#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Whether both plans' kernels are the same, compiled: their launches and arguments may differ.
bool same_kernels(const LaunchPlan& a, const LaunchPlan& b);

struct SmallProblem {
  Problem problem;
  LaunchPlan plan;
};

/// Small problems on which configurations run the very kernels that they run on a given problem,
/// and treat them differently: extents that leave parts incomplete where the given ones don't,
/// other factors, other numbers of rows and heads. A kernel that is right on the given problem
/// alone, because no part of it is incomplete, is found by them.
class SmallProblems {
 public:
  /// Of `problem`. Equal seeds give equal problems.
  SmallProblems(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                std::uint64_t seed);

  /// At most `count` problems with plans whose kernels are those of `plan`, which is the given
  /// problem's with this configuration; fewer where extents and attributes reach the kernels' text.
  std::vector<SmallProblem> with_kernels_of(const Config& config, const LaunchPlan& plan,
                                            std::size_t count);

 private:
  /// A value of an attribute with which a configuration has the same kernels.
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
  std::vector<Problem> drawn_;  ///< by the first configuration, which tells what can be changed
};

}  // namespace greta::kernels
