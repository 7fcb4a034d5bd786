#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/model/space.hpp"

namespace greta::tuner {

/// The coordinates of a configuration for models: one column for the variant and one per parameter
/// name, without those that have a single value. A coordinate is the place of the value among the
/// column's values in ascending order, so the order in which a space lists values has no effect.
class Features {
 public:
  explicit Features(const Space& space);

  /// Marks a parameter that the variant lacks.
  static constexpr float absent = -1;

  /// Returns the number of columns.
  std::size_t count() const { return columns_; }
  /// Returns the coordinates of a configuration, each from 0 (smallest value) to 1 (largest). The
  /// variant's are 0, 1, 2, …
  std::vector<float> of(const Choice& choice) const;
  /// Returns whether the values of a column are numbers in an order; those of the variant are not.
  bool ordered(std::size_t column) const { return ordered_[column]; }

 private:
  struct Source {
    std::size_t column = 0;
    std::vector<float> coordinates;  ///< by the index of the value
  };

  std::size_t columns_ = 0;
  std::vector<bool> ordered_;
  std::vector<std::vector<Source>> sources_;  ///< [variant][parameter]; no coordinates: one value
  bool has_variants_ = false;
};

}  // namespace greta::tuner
