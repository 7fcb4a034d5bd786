#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A forest of regression trees. Each tree is fitted to a random sample of the points, drawn with
/// replacement, and each split considers a random part of the columns. The spread of the trees'
/// predictions is the uncertainty. Sources: Breiman, "Random Forests", Machine Learning 2001;
/// Hutter, Hoos, Leyton-Brown, "Sequential Model-Based Optimization for General Algorithm
/// Configuration", LION 2011.
class RandomForest {
 public:
  using Points = std::vector<std::vector<float>>;

  struct Options {
    std::size_t trees = 30;
    std::size_t least_split = 4;    ///< number of points that a node needs to be split
    double column_share = 5.0 / 6;  ///< part of the columns that a split considers
  };

  /// Takes at least one point and one value per point.
  RandomForest(const Options& options, const Points& points, const std::vector<double>& values,
               std::mt19937_64& random);

  struct Guess {
    double mean = 0;
    double deviation = 0;
  };
  Guess guess(const std::vector<float>& point) const;

 private:
  struct Node {
    std::size_t column = 0;
    float threshold = 0;      ///< smaller values are in the first child
    std::uint32_t child = 0;  ///< of the two that follow each other; 0: a leaf
    double value = 0;         ///< mean of a leaf
  };
  using Tree = std::vector<Node>;
  class Grower;

  std::vector<Tree> trees_;
};

}  // namespace greta::tuner
