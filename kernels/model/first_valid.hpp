#pragma once

#include <optional>

#include "kernels/model/space.hpp"

namespace greta::kernels {

/// Returns whether the problem and the device meet the constraints that read no parameter. Where
/// they do not, no configuration is valid, and no Space need be made to know it.
bool is_possible(const Alternative& alternative);

/// Throws Error if names of parameters or their values repeat, or if a constraint reads a parameter
/// that the variant lacks.
void check_names(const Alternative& alternative);

/// Returns the configuration with these values of the parameters.
Config config_of(const Alternative& alternative, const Space::Positions& positions);

/// Returns the first valid configuration of a variant, which is Space::at(0) of it alone, or
/// std::nullopt if there is none. Takes a fraction of the time of a Space, which has to know all.
std::optional<Config> first_valid(const Alternative& alternative);

}  // namespace greta::kernels
