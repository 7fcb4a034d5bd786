#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/diagnose/changes/kernel_text.hpp"

namespace greta::tuner {

/// An operator and its right operand that an expression may lack.
struct MissingTerm {
  /// Why: a variable that nothing reads, or the same words around it at another place; the same
  /// word, function or array before it; the term is frequent in the source.
  enum class Likelihood { fits, elsewhere, frequent };
  std::size_t at = 0;  ///< the byte at which it is inserted
  std::string text;    ///< " * args.n"
  Likelihood likelihood = Likelihood::elsewhere;
};

/// Returns terms for the ends of operands: the few that follow the same word, function or array
/// most often, variables of the function that nothing reads, and the factors and summands that are
/// most frequent. All their variables are known there. Source code repeats itself (A. Hindle, E. T.
/// Barr, Z. Su, M. Gabel, P. Devanbu: On the naturalness of software, ICSE 2012), so that these are
/// more likely than other terms.
std::vector<MissingTerm> missing_terms(std::string_view source,
                                       const std::vector<SourceToken>& tokens);

}  // namespace greta::tuner
