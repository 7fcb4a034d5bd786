#pragma once

#include <filesystem>
#include <vector>

#include "kernels/catalog.hpp"

namespace greta::tuner::cli {

/// Adds the operation of a description (docs/your-kernel.md) to known_operations(). Returns it.
/// `reference` is the socket of what computes its reference (ReferenceServer); empty: as the
/// description says. Throws CommandError.
const Operation& add_described(const std::filesystem::path& description,
                               const std::filesystem::path& reference = {});

/// Returns the operations of this program: GRETA's and those that were added.
Catalog known_operations();
/// Returns the descriptions that were added.
const std::vector<std::filesystem::path>& description_files();

}  // namespace greta::tuner::cli
