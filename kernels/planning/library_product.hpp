#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/planning/plan.hpp"

/// Products by the vendor's library: what the variants `vendor` of several operations share.
namespace greta::kernels {

inline const Argument no_operand = std::uint64_t{0};

/// What a product of the library reads and writes: operands, or parts of the workspace.
struct LibraryOperands {
  Argument a = OperandArgument{0}, b = OperandArgument{1};
  Argument added;  ///< the matrix that is added, or the result if there is none
  Argument result;
  Argument bias = no_operand, scales_a = no_operand, scales_b = no_operand;
};

/// Returns the parameters of a product:
/// - RANK, the position of the algorithm in the library's own ranking;
/// - WORKSPACE_MIB, the most memory that it may use, which decides what is ranked: slices of K need
///   it;
/// - SPLITK, the number of slices of K; 0: as the library ranks the algorithm.
std::vector<Parameter> library_parameters();
/// Returns how earlier configurations are carried over.
std::vector<ConfigMigration> library_migrations();

/// Returns the bytes of a configuration's WORKSPACE_MIB.
std::uint64_t library_workspace(const Config& config);

/// Returns the plan of one product of the library, whose rank and workspace are those of `config`.
/// `name`: of the kernel, e.g. "gemm/vendor". The workspace begins with the library's.
LaunchPlan library_plan(std::string name, const DeviceInfo& device, const Config& config,
                        MatrixProduct product, const LibraryOperands& operands);

}  // namespace greta::kernels
