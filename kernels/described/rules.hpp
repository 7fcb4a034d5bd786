#pragma once

#include <string>
#include <vector>

#include "kernels/described/description.hpp"

/// Rules of descriptions beyond the form of each field; each throws BadDescription.
namespace greta::kernels::described {

/// A name of an operand, a scalar, a dimension or a parameter: no word that formulas or arguments
/// have.
void check_meaning(const PlacedJson& place, const std::string& name);
/// A dimension has no name of another part of a problem: "dtype=f32".
void check_word_of_problems(const PlacedJson& place, const std::string& name);
/// A parameter becomes a macro, so it has no name of the source's language.
void check_macro(const PlacedJson& place, const std::string& name);
/// A constraint compares words only with words that the parameter has.
void check_words(const PlacedJson& place, const Formula& condition,
                 const std::vector<DescribedParameter>& parameters);
/// The type of the operand has the numbers that it is filled with.
void check_fill(const PlacedJson& place, const DescribedOperand& operand);
/// One file at least.
std::vector<std::string> read_sources(const PlacedJson& value);

}  // namespace greta::kernels::described
