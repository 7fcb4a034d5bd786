#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/problem.hpp"

namespace greta::db {

/// An index of the problems that have winners, with devices and databases. It contains nothing
/// else, so that it is read fast. Problems that differ only in dimensions form a family.
class WinnerIndex {
 public:
  /// The location of a winner.
  struct Place {
    std::uint16_t layer = 0;   ///< index of its database
    std::uint16_t device = 0;  ///< index of its device
  };
  struct Family {
    Problem problem;                    ///< any problem of the family
    std::vector<std::int64_t> extents;  ///< all dimensions in order, winner by winner
    std::vector<Place> places;          ///< one per winner

    std::span<const std::int64_t> extents_of(std::size_t winner) const;
    /// Returns the problem of a winner.
    Problem problem_of(std::size_t winner) const;

    std::string prefix;              ///< key up to the dimensions, with the space before them
    std::vector<std::string> names;  ///< names of the dimensions, with the equals sign
  };

  /// Adds a winner by its problem's key. Returns false if the key can't be read.
  bool add(std::string_view problem_key, Place place);

  /// Returns the family of a problem, or nullptr if it has none.
  const Family* find(const Problem& problem) const;

 private:
  std::vector<Family> families_;
  std::size_t last_ = 0;  // family of the last winner added: keys come in order
};

}  // namespace greta::db
