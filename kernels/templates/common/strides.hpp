#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/common/render.hpp"

/// Operands whose rows are not packed: attributes called *_stride (Attribute::packed).
namespace greta::kernels {

/// Elements from one row of an operand to the next, `packed` and `fallback`, in words, by default.
Attribute stride_attribute(std::string name, std::string help, std::string fallback,
                           std::function<std::int64_t(const Problem&)> packed);
/// That of X, from one of its rows of `cols` elements to the next.
Attribute x_stride_attribute(std::string help);

/// The strides that a problem has, by name: elements from one row to the next.
using Strides = std::vector<std::pair<std::string, std::int64_t>>;
Strides strides_of(const Problem& problem);

/// For each of them: VEC must divide it.
std::vector<Constraint> stride_constraints(const Strides& strides);
/// The largest number that divides `extent` and each of them.
std::int64_t common_step(const Strides& strides, std::int64_t extent);
/// Elements of the widest load that every row of `cols` elements begins and ends with.
int widest_of(const Strides& strides, DType type, std::int64_t cols);

/// X_STRIDE for x_stride: elements; 0 where it is `packed`.
Defines::value_type stride_define(const Strides& strides, std::string_view name,
                                  std::int64_t packed);

}  // namespace greta::kernels
