#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/gemm/shape.hpp"

/// What problems of grouped products have in common, however their B is stored.
namespace greta::kernels::grouped_gemm {

bool is_masked(const gemm::RowGroups& rows);

/// Returns the number of rows of each group in plain inputs.
std::vector<std::int64_t> measured_rows(const Problem& problem);

/// Returns the operand with the groups' ends or numbers of rows.
TensorSpec rows_operand(const gemm::RowGroups& rows);
bool is_rows_operand(std::string_view name);
/// Returns its contents in plain inputs.
HostTensor rows_input(const Problem& problem, const TensorSpec& spec);

std::vector<Dimension> dimensions();
/// Return attributes: where rows are, what is done to products, and how rows are distributed.
Attribute form_attribute(), epilogue_attribute(), routing_attribute();

/// Kernels count rows, with those of an incomplete tile of each group, in 32 bits.
Result<void> check_rows(const Problem& problem);

/// Kernels count the rows of B of all groups, of which each has `lines`, in 32 bits.
Result<void> check_lines(const Problem& problem, std::int64_t lines);

/// Returns the problem silu(gate) * up of products with these rows and columns of gates.
Problem gate_of_rows(DType type, std::int64_t rows, std::int64_t columns);

/// Returns the work of the rows in plain inputs, and of groups that have some. `operands` are A, C,
/// the groups' rows, and others that each group has.
Work work(const Problem& problem, std::vector<TensorSpec> operands);

/// Returns the problem without epilogue and distribution of rows, of as many columns of products.
Problem unfused(const Problem& problem);
/// Reduces the number of groups, with their rows, and then that of columns.
Problem stand_in(const Problem& problem, double fraction);

/// Fills in what all operations with groups have, with these operands: their work among it.
void set_groups(Operation& operation, std::vector<TensorSpec> (*tensors)(const Problem&));

}  // namespace greta::kernels::grouped_gemm
