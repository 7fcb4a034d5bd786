#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/distance.hpp"
#include "db/tuned_db.hpp"

namespace greta::db {

/// What one way to choose among other shapes' winners would have cost, had each problem been
/// unknown.
struct ChoiceScore {
  std::string name;     ///< a distance's, "within_1", "votes_3", "copied" or "default"
  std::string summary;  ///< one line
  /// Regrets, as far as recorded: the time of what was chosen over the winner's, in ascending
  /// order.
  std::vector<double> regrets;
  /// Of the problems for which every way's regret is known.
  std::vector<double> shared;
};

struct ChoiceComparison {
  std::size_t problems = 0;  ///< that have another shape's winner which is valid for them
  std::vector<ChoiceScore> scores;
};

/// What a neighbour's configuration costs for a result's problem, as carried_over(): its time over
/// the winner's; nothing where nobody knows.
using ChoiceCost =
    std::function<std::optional<double>(const StoredWinner& result, const StoredWinner& neighbour)>;

/// Leaves one out: for each of `results`, what each distance's nearest neighbour among `winners`
/// costs, carried over; beside them other ways, the operation's default among them. Of
/// equally near winners the one that nearest_neighbour() takes. `cost` is asked once for each
/// configuration of a result.
ChoiceComparison compare_choices(const std::vector<StoredWinner>& results,
                                 const std::vector<StoredWinner>& winners, const ChoiceCost& cost);

}  // namespace greta::db
