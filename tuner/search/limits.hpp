#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/model/space.hpp"

namespace greta::tuner {

/// A user's limits of a search: only these variants, and only these values of parameters. The
/// default and an earlier winner are compared in any case.
struct SearchLimits {
  std::vector<std::string> variants;               ///< empty: all
  std::map<std::string, std::vector<int>> values;  ///< by parameter
  std::set<std::string> ranges{};  ///< the parameters that were limited by a range, for messages

  bool empty() const { return variants.empty() && values.empty(); }
  /// Returns "variant tiled, BK=16,32", with words in place of the values that stand for them; an
  /// empty string without limits.
  std::string text(const ValueWords& words = {}) const;
};

/// Returns the part of a space within limits: a variant that lacks a limited parameter is left out.
/// The result may have no valid configuration.
Space limited(const Space& space, const SearchLimits& limits);

/// Checks limits on a space. Fails for a variant, a parameter or a value that no alternative has,
/// and if nothing is left, on the field "variant", "fix" (a parameter with one value) or "range".
Result<void> check_limits(const Space& space, const SearchLimits& limits);

}  // namespace greta::tuner
