#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Returns the candidate that a word was probably meant to be: the one with the smallest edit
/// distance (insertions, deletions, substitutions, transpositions of neighbours; case and the
/// difference of '-' and '_' do not count), if that is at most a third of the word's length, but 1
/// for short words. Returns an empty string if there is none.
std::string nearest_spelling(std::string_view word, const std::vector<std::string>& candidates);

/// Returns "must be one of A, B", and "; did you mean A?" if `word` is similar to one of them.
std::string must_be_one_of(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace greta::device
