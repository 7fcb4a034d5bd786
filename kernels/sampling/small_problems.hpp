#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/sampling/coverage.hpp"
#include "kernels/sampling/random_problem.hpp"

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
/// numbers of rows and heads, and more parts. They expose kernels that are correct only on the
/// given problem, e.g. because it has no incomplete parts, or so few that no buffer is filled
/// again.
class SmallProblems {
 public:
  /// What is drawn, before some are chosen.
  struct Extent {
    /// Large tiles need extents of their size: 129 x 132 x 1056 takes 36 million operations.
    WorkLimit limit{4e7, 2 << 20};
    std::size_t most_drawn = 320;
    std::size_t attempts = 2000;
    /// Of all launches of a problem that is chosen: these take a tenth of a second on a CPU.
    std::uint64_t most_threads = std::uint64_t{1} << 18;
  };

  /// Draws small problems for `problem`. `first` is one of its configurations, with its plan; it
  /// determines which extents and attributes can change. Equal arguments give equal problems.
  SmallProblems(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                std::uint64_t seed, const Config& first, const LaunchPlan& plan,
                const Extent& extent);
  SmallProblems(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                std::uint64_t seed, const Config& first, const LaunchPlan& plan)
      : SmallProblems(operation, problem, device, seed, first, plan, Extent{}) {}

  /// Returns at most `count` problems with plans whose kernels are those of `plan`, the plan of the
  /// given problem and `config`. The first have odd extents if the operation wants so
  /// (Operation::checks), the last of several has many parts of a division that the seed picks, and
  /// the others rather an extent with a remainder that it picks.
  /// Returns fewer if extents and attributes are compiled into the kernels.
  std::vector<SmallProblem> with_kernels_of(const Config& config, const LaunchPlan& plan,
                                            std::size_t count) const;

 private:
  /// A value of an attribute that does not change a configuration's kernels.
  struct FreeValue {
    const Attribute* attribute;
    std::string value;
  };
  std::vector<FreeValue> free_values(const Config& config, const LaunchPlan& plan) const;
  bool reaches_text(std::size_t dimension, const Config& config, const LaunchPlan& plan) const;
  /// Returns for each dimension the lengths of parts into which the configuration divides it.
  std::vector<std::vector<std::int64_t>> parts_of(const Config& config) const;
  void draw(const Config& config, const LaunchPlan& plan, const Extent& bounds);
  void keep(Problem problem);
  /// Whether a dimension has other extents with the same kernels.
  bool varies(std::size_t dimension) const;
  void make_odd(Problem& problem) const;
  /// Returns the indices of a problem's features in worth_.
  std::vector<std::size_t> feature_indices(const Problem& problem);

  /// A problem, and what it has to do with none but the given problem.
  struct Drawn {
    Problem problem;
    ProblemShape shape;
    std::vector<std::size_t> features;  ///< indices in worth_
    int lost_extents = 0;
    bool odd = false;  ///< all extents that can vary are odd
  };
  struct Seen {
    std::vector<bool> features;
    std::set<std::pair<std::size_t, DivisionCase>> cases;  ///< by position of the division
  };
  /// An extent's remainder_class().
  struct Wish {
    std::size_t dimension;
    int remainder;
  };
  /// Returns one that the seed picks; std::nullopt if no extent varies.
  std::optional<Wish> wish() const;
  /// `deep`: a division of which many parts count before all else.
  int gain(const Drawn& drawn, const std::vector<Division>& divisions, const Seen& seen,
           std::optional<std::size_t> deep, const std::optional<Wish>& wish) const;
  /// Returns the indices of problems that have not been tried, the best first. `deep`: with many
  /// parts of a division that the seed picks.
  std::vector<std::size_t> in_order(const std::vector<bool>& tried, bool odd,
                                    const std::vector<std::vector<Division>>& divisions,
                                    const Seen& seen, bool deep) const;
  static void see(const std::vector<std::size_t>& features, const std::vector<Division>& divisions,
                  Seen& seen);

  const Operation& operation_;
  const DeviceInfo device_;
  const Problem problem_;
  const std::uint64_t seed_;
  const std::uint64_t most_threads_;
  std::vector<Drawn> drawn_;
  std::vector<bool> fixed_;  ///< of each dimension: its extent is compiled into the kernels
  std::map<Feature, std::size_t> known_;  ///< features of problems; values are indices in worth_
  std::vector<int> worth_;
  std::vector<std::size_t> own_features_;
};

}  // namespace greta::kernels
