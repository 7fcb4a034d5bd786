#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include "kernels/model/random.hpp"

namespace greta::kernels {

/// Draws values in random order without replacement, and starts again when all have been drawn.
template <typename T>
class Deck {
 public:
  explicit Deck(std::vector<T> values) : values_(std::move(values)) {}

  const T& draw(std::mt19937_64& random) {
    if (left_ == 0) left_ = values_.size();
    const auto chosen = static_cast<std::size_t>(uniform_below(random, left_));
    std::swap(values_[chosen], values_[--left_]);
    return values_[left_];
  }
  /// Removes the values that match.
  template <typename Matches>
  void discard(Matches matches) {
    const auto undrawn = values_.begin() + static_cast<std::ptrdiff_t>(left_);
    left_ -= static_cast<std::size_t>(std::count_if(values_.begin(), undrawn, matches));
    std::erase_if(values_, matches);  // keeps the order of the others
  }
  bool empty() const { return values_.empty(); }

 private:
  std::vector<T> values_;
  std::size_t left_ = 0;  ///< values_[0 .. left_) have not been drawn in this round
};

}  // namespace greta::kernels
