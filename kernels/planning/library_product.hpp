#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/planning/plan.hpp"

/// Products by the vendor's library: what the variants `vendor` of several operations share.
namespace greta::kernels {

/// The operation's tensors that a product of the library reads and writes, by number.
struct LibraryOperands {
  std::size_t a = 0, b = 1;
  std::size_t added = 0;  ///< the matrix that is added, or the result if there is none
  std::size_t result = 0;
  std::optional<std::size_t> bias{}, scales_a{}, scales_b{};
};

/// Returns the parameters of a product:
/// - RANK, the position of the algorithm in the library's own ranking;
/// - WORKSPACE_MIB, the most memory that it may use, which decides what is ranked: slices of K need
///   it;
/// - SPLITK, the number of slices of K; 0: as the library ranks the algorithm.
std::vector<Parameter> library_parameters();
/// Returns how earlier configurations are carried over.
std::vector<ConfigMigration> library_migrations();

/// Returns the plan of one product of the library, whose rank and workspace are those of `config`.
/// `name`: of the kernel, e.g. "gemm/vendor".
LaunchPlan library_plan(std::string name, const DeviceInfo& device, const Config& config,
                        MatrixProduct product, const LibraryOperands& operands);

}  // namespace greta::kernels
