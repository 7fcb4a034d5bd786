#pragma once

#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/planning/render.hpp"
#include "kernels/planning/stride_attributes.hpp"

/// Shared parts of operations that process each row of a matrix independently (dimensions `rows`
/// and `cols`). The sources are common/rows.{hip,glsl}.
namespace greta::kernels::rows {

/// Describes an operation. Its kernels are NAME/rows.{hip,comp}.
struct RowOperation {
  std::string name;
  /// Returns the operands. Their names determine the kernel arguments: X (rows x cols), mask or
  /// residual (rows x cols), weight, bias and gain (1 x cols), Y and sum (rows x cols). If X is
  /// input_output, it is also Y.
  std::function<std::vector<TensorSpec>(const Problem&)> tensors;
  /// Returns the macros for attributes that do not follow from the operands; may be empty.
  std::function<Defines(const Problem&)> defines;
  /// Returns the scalar argument of each element's computation.
  std::function<float(const Problem&)> factor;
  int statistic_words = 1;  ///< size of a row's statistic in 32-bit words
  /// Number of 32-bit registers per held element, in addition to its value.
  int registers_beside = 0;
  bool splits = true;  ///< whether several workgroups can share a row
};

/// The properties of a problem that the kernels of a row operation need.
struct Shape {
  RowOperation operation;
  DType in = DType::f32, out = DType::f32;
  std::int64_t rows = 0, cols = 0;
  Strides strides{};
  std::vector<TensorSpec> tensors{};
  Defines defines{};
  float factor = 0;
};

/// Describe a matrix of the problem's rows and columns, with the row stride x_stride (outputs:
/// y_stride), or only its first row.
TensorSpec matrix(const Problem& problem, const char* name, Role role);
TensorSpec first_row(const Problem& problem, const char* name);

/// Returns whether one of the operands has this name.
bool has(const std::vector<TensorSpec>& operands, std::string_view name);

/// Returns an operation with the shared parts of all row operations: name, dimensions, types,
/// sizes, operands, the given attributes followed by the strides, and the variants held, split,
/// streamed and naive (common/rows.hip).
Operation start_template(const RowOperation& operation, std::vector<Attribute> attributes);

}  // namespace greta::kernels::rows
