#pragma once

#include <string>
#include <vector>

#include "kernels/model/kernel_template.hpp"
#include "kernels/templates/common/render.hpp"

/// Operands whose rows are not packed: attributes called *_stride (Attribute::packed).
namespace greta::kernels {

/// Elements from one row of an operand to the next, `packed` and `fallback`, in words, by default.
Attribute stride_attribute(std::string name, std::string help, std::string fallback,
                           std::int64_t (*packed)(const Problem&));
/// That of X, from one of its rows of `cols` elements to the next.
Attribute x_stride_attribute(std::string help);

/// For each stride that a problem has: VEC must divide it.
std::vector<Constraint> stride_constraints(const Problem& problem);
/// The largest number that divides `extent` and each stride that a problem has.
std::int64_t common_step(const Problem& problem, std::int64_t extent);
/// Elements of the widest load that every row of `cols` elements begins and ends with.
int widest_of(const Problem& problem);

/// X_STRIDE for x_stride: elements; 0 where it is `packed`.
Defines::value_type stride_define(const Problem& problem, std::string_view name,
                                  std::int64_t packed);

}  // namespace greta::kernels
