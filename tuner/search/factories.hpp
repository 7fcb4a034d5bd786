#pragma once

#include <memory>

#include "tuner/search/strategy.hpp"

namespace greta::tuner {

// Each strategy is defined in the source file of its name.
std::unique_ptr<Strategy> create_auto(const SearchProblem& problem);
std::unique_ptr<Strategy> create_exhaustive(const SearchProblem& problem);
std::unique_ptr<Strategy> create_annealing(const SearchProblem& problem);
std::unique_ptr<Strategy> create_basin(const SearchProblem& problem);
std::unique_ptr<Strategy> create_evolution(const SearchProblem& problem);
std::unique_ptr<Strategy> create_forest(const SearchProblem& problem);
std::unique_ptr<Strategy> create_genetic(const SearchProblem& problem);
std::unique_ptr<Strategy> create_local(const SearchProblem& problem);
std::unique_ptr<Strategy> create_random(const SearchProblem& problem);

}  // namespace greta::tuner
