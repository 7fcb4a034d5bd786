#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/diagnose/changes/kernel_text.hpp"

namespace greta::tuner {

/// An operator and its right operand that an expression may lack, since they follow the same word
/// at another place of the source.
struct MissingTerm {
  std::size_t at = 0;  ///< the byte at which it is inserted
  std::string text;    ///< " * args.n"
  bool fits = false;   ///< whether what follows is the same at the other place, too
};

/// Returns terms for the places of a source at which operands end with a word: the few that follow
/// this word most often. All their variables are known
/// there. Source code repeats itself (A. Hindle, E. T. Barr, Z. Su, M. Gabel, P. Devanbu: On the
/// naturalness of software, ICSE 2012), so that these are more likely than other terms.
std::vector<MissingTerm> missing_terms(std::string_view source,
                                       const std::vector<SourceToken>& tokens);

}  // namespace greta::tuner
