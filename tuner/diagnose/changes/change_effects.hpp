#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tuner/compile/kernel_case.hpp"

namespace greta::tuner {

/// What a change that does not mend a fault does to the elements that a case checks, as shares.
struct ChangeEffect {
  bool known = false;
  float wrong = 0;   ///< of the wrong elements, those that get another value
  float right = 0;   ///< of the correct ones, those that get another value
  float mended = 0;  ///< of the wrong elements, those that become correct
};

/// Compares the results of changed kernels with those of the unchanged ones.
class EffectJudge {
 public:
  /// Takes the unchanged kernels' contents of the buffers with expected values. Those elements
  /// count that are marked, of each buffer of the case; without marks all.
  EffectJudge(const KernelCase& run, std::vector<std::vector<std::byte>> unchanged,
              const std::vector<std::vector<char>>& marks);

  ChangeEffect effect_of(const std::vector<std::vector<std::byte>>& contents) const;

 private:
  /// An element that counts.
  struct Element {
    std::size_t buffer, index;  ///< the buffer's place among those with expected values
    Expected expected;
    bool wrong;
  };

  std::vector<std::string> dtypes_;
  std::vector<std::vector<std::byte>> unchanged_;
  std::vector<Element> elements_;
  std::size_t wrong_ = 0;
};

/// What trials say of places of a source: a fault's place is one whose changes change wrong
/// elements.
class PlaceEvidence {
 public:
  using Place = std::pair<std::size_t, std::size_t>;  ///< a kernel and one of its slots

  void add(Place place, const ChangeEffect& effect);
  /// Returns how much more likely the fault is there than where nothing was tried, as a logarithm.
  double worth_of(Place place) const;

 private:
  struct Seen {
    int trials = 0, idle = 0;  ///< idle: no wrong element got another value
    float wrong = 0;           ///< the greatest of the effects
    float mended = 0;
    bool apart = false;  ///< whether a change has changed wrong elements alone
  };
  std::map<Place, Seen> places_;
};

}  // namespace greta::tuner
