#pragma once

#include <memory>

#include "tuner/search/strategy.hpp"

namespace greta::tuner {

// One for each strategy, defined in the file of its name.
std::unique_ptr<Strategy> create_exhaustive(const SearchProblem& problem);
std::unique_ptr<Strategy> create_local(const SearchProblem& problem);
std::unique_ptr<Strategy> create_random(const SearchProblem& problem);

}  // namespace greta::tuner
