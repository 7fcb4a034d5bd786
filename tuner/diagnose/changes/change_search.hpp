#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>

#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner {

/// A single change of a kernel's source with which all results are correct.
struct FoundChange {
  std::string kind;    ///< "wrong operator", "wrong constant", … (SourceChange::kind)
  std::string kernel;  ///< file of the case: "kernel-0.hip"
  std::size_t line = 0;
  std::string before, after;  ///< what is replaced, and by what; `before` may be empty
  std::string text;           ///< the line with the change
  bool with_others = false;   ///< correct with other operands, too
  std::size_t others = 0;     ///< number of other changes that were confirmed as well
};

/// What a search for a change found.
struct ChangeSearch {
  std::optional<FoundChange> found;
  std::size_t changes = 0;   ///< number of possible ones, of what is executed
  std::size_t tried = 0;     ///< of these, those that were compiled
  std::size_t compiled = 0;  ///< of these, those whose kernel could be run
  bool all = false;          ///< whether all were tried
};

/// Searches for a single change of a case's kernels with which all results are correct: with the
/// case's operands, several times, and with three others that the catalog's operation draws. Each
/// is compiled and run on a CPU device of the case's architecture, in processes of their own, which
/// a change may end or block. Fails with `unavailable` if there is no such device here, or the
/// unchanged source does not give the case's kernel.
///
/// The method is that of mutation-based fault localisation and repair: V. Debroy, W. E. Wong:
/// Using mutation to automatically suggest fixes for faulty programs, ICST 2010.
Result<ChangeSearch> search_change(const Catalog& catalog, const FailedCase& failed,
                                   double seconds);

}  // namespace greta::tuner
