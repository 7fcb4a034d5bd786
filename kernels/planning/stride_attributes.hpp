#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/planning/render.hpp"

/// Operands with a row stride: attributes named *_stride (Attribute::packed).
namespace greta::kernels {

/// Returns an attribute for the row stride of an operand in elements. `packed` computes the
/// default; `fallback` describes it in words.
Attribute stride_attribute(std::string name, std::string help, std::string fallback,
                           std::function<std::int64_t(const Problem&)> packed);
/// Returns the attribute for the row stride of X, by default `cols`.
Attribute x_stride_attribute(std::string help);

/// The row strides of a problem, by name, in elements.
using Strides = std::vector<std::pair<std::string, std::int64_t>>;
Strides strides_of(const Problem& problem);

/// Checks that pairs lie in whole loads: `dim` is even, and so are strides where style=interleaved
/// pairs neighbours.
Result<void> check_pairs(const Problem& problem);

/// Returns the constraint that VEC divides the stride, for each of them.
std::vector<Constraint> stride_constraints(const Strides& strides);
/// Returns the greatest common divisor of `extent` and the strides.
std::int64_t common_step(const Strides& strides, std::int64_t extent);
/// Returns the number of elements in the widest load that is aligned in every row of `cols`
/// elements.
int widest_of(const Strides& strides, DType type, std::int64_t cols);

/// Returns the macro, e.g. X_STRIDE for x_stride, with the stride in elements, or 0 if it is
/// `packed`.
Defines::value_type stride_define(const Strides& strides, std::string_view name,
                                  std::int64_t packed);

}  // namespace greta::kernels
