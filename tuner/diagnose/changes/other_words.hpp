#pragma once

#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// How likely a change is to mend a fault, divided by the number of such changes.
enum Rank { likely, possible, seldom, unlikely };

/// A word or sign that may stand in place of another one.
struct OtherWord {
  Rank rank;
  std::string_view text;
};

/// Returns the operators with which one is easily confused.
const std::vector<OtherWord>& other_operators(std::string_view sign);
/// Returns the types with which a type is easily confused, as wider ones.
const std::vector<std::string_view>& other_types(std::string_view type);
/// Returns the names with which a name is easily confused, as "row" and "col".
std::vector<std::string_view> confused_names(std::string_view name);

}  // namespace greta::tuner
