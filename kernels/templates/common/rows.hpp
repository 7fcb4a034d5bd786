#pragma once

#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/common/render.hpp"
#include "kernels/templates/common/strides.hpp"

/// Operations on the rows of a matrix, each row on its own (dimensions `rows` and `cols`): what
/// their variants share. The sources are common/rows.{hip,glsl}.
namespace greta::kernels::rows {

/// What distinguishes an operation from the others. Its kernels are NAME/rows.{hip,comp}.
struct RowOperation {
  std::string name;
  /// Operands; which of the kernels' arguments one is, its name says: X (rows x cols), mask or
  /// residual (the same), weight, bias and gain (1 x cols), Y and sum (rows x cols). X is Y as well
  /// where it is input_output.
  std::function<std::vector<TensorSpec>(const Problem&)> tensors;
  /// The attributes that reach the text, besides which operands there are; empty: none.
  std::function<Defines(const Problem&)> defines;
  /// The number that every element's computation is given.
  std::function<float(const Problem&)> factor;
  int statistic_words = 1;  ///< 32-bit numbers of a row's statistic
  /// 32-bit registers for each element of a row that is held, besides its value.
  int registers_beside = 0;
  bool splits = true;  ///< whether a row's parts can be on several workgroups
};

/// What the kernels of such an operation read of a problem.
struct Shape {
  RowOperation operation;
  DType in = DType::f32, out = DType::f32;
  std::int64_t rows = 0, cols = 0;
  Strides strides{};
  std::vector<TensorSpec> tensors{};
  Defines defines{};
  float factor = 0;
};

/// A matrix of the problem's rows and columns, its rows x_stride apart, or y_stride those of an
/// output; or its first row.
TensorSpec matrix(const Problem& problem, const char* name, Role role);
TensorSpec first_row(const Problem& problem, const char* name);

/// Whether one of them has this name.
bool has(const std::vector<TensorSpec>& operands, std::string_view name);

/// What the templates of all operations on rows have in common: name, dimensions, types, sizes,
/// operands, strides behind the operation's own attributes, and the variants held, split, streamed
/// and naive (common/rows.hip).
Operation start_template(const RowOperation& operation, std::vector<Attribute> attributes);

}  // namespace greta::kernels::rows
