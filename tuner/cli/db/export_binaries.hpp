#pragma once

#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "tuner/cli/options/database_options.hpp"

namespace greta::tuner::cli {

/// The options of export --ship that concern compiled kernels.
struct BinaryExport {
  std::vector<std::string> architectures;  ///< of --binaries; empty: none
  std::vector<std::string> captures;       ///< of --problems
};

/// Adds compiled kernels to what ships: those of the winners and of the captures' problems, as
/// look-ups with and without the databases that GRETA ships answer them, on each device of the
/// architectures. Throws CommandError.
void add_binaries(Contents& contents, const BinaryExport& options);

/// Returns "24 binaries of gfx942 (1.2 MiB)", for each target.
std::string binaries_text(const std::vector<BinaryTotals>& totals);

}  // namespace greta::tuner::cli
