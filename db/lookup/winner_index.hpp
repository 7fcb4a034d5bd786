#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/problem.hpp"

namespace greta::db {

/// Which problems have winners, on which devices and in which databases; no more of them, so that
/// it is read fast. Problems that differ in dimensions alone are a family.
class WinnerIndex {
 public:
  /// Where a winner is stored.
  struct Place {
    std::uint16_t layer = 0;   ///< the number of its database
    std::uint16_t device = 0;  ///< the number of its device
  };
  struct Family {
    Problem problem;                    ///< any one of it
    std::vector<std::int64_t> extents;  ///< of all dimensions in order, winner after winner
    std::vector<Place> places;          ///< one for each

    std::span<const std::int64_t> extents_of(std::size_t winner) const;
    /// The problem of a winner.
    Problem problem_of(std::size_t winner) const;

    std::string prefix;              ///< the key up to the dimensions, with the space before them
    std::vector<std::string> names;  ///< of the dimensions, with the equals sign
  };

  /// Adds a winner by its problem's key; false for one that can't be read.
  bool add(std::string_view problem_key, Place place);

  /// The family of a problem; nullptr where it has none.
  const Family* find(const Problem& problem) const;

 private:
  std::vector<Family> families_;
  std::size_t last_ = 0;  // where the last one was added: keys come in order
};

}  // namespace greta::db
