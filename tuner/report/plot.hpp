#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "db/trial.hpp"
#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Plots as text, of Braille patterns and blocks, for terminals with UTF-8.

/// Returns trials as dots and the best so far as a line, over the number of the trial, with times
/// on a logarithmic axis. `times_us` has a NaN for a trial that failed. Points beyond 8 times the
/// best are at the upper edge. Empty with fewer than 3 times.
std::string plot_text(const std::vector<double>& times_us, std::size_t columns);
/// The same for the trials of a problem, without those of smaller problems.
std::string plot_text(const std::vector<Trial>& trials, const std::string& problem_key,
                      std::size_t columns);

/// Returns a bar of `columns` characters, filled to the share (0…1) in eighths of a character.
std::string bar_text(double share, std::size_t columns);

}  // namespace greta::tuner
