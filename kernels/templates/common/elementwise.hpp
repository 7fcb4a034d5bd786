#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/common/render.hpp"
#include "kernels/templates/common/strides.hpp"

/// Operations that take each element once and are bound by memory. Their kernels stand on
/// common/elementwise.{glsl,hip} and have the parameters THREADS of a workgroup, VEC elements of a
/// load, and ITEMS vectors of each operand that a thread loads before it computes.
namespace greta::kernels {

constexpr std::int64_t largest_items = 8;

/// What the kernel of an operation reads of a problem.
struct ElementwiseShape {
  DType in = DType::f32, out = DType::f32;
  Strides strides{};
  Defines defines{};  ///< besides types and parameters
  std::vector<Argument> arguments{};

  /// Elements that follow each other in every operand: VEC divides it. 0: any VEC is right.
  std::int64_t run = 0;
  std::string_view run_name = "";  ///< for messages: "dim"
  int least_width = 1;             ///< of VEC
  std::int64_t most_items = largest_items;
  std::string_view items_name = "";  ///< for messages: "heads"; empty: any ITEMS are right
  std::function<std::int64_t(const Config&)> workgroups;
  std::function<std::vector<Division>(const Config&)> divisions;  ///< as Variant::divisions
};

/// Gives an operation its only variant: the kernel `path`, "add/flat" for a variant called "flat".
/// `summary`: what a thread takes, in one line.
void set_elementwise(Operation& operation, std::string path, std::string summary,
                     ElementwiseShape (*shape)(const Problem&));

/// Of a kernel whose workgroups take `elements` one after the other, whatever their number.
ElementwiseShape flat_shape(const Problem& problem, std::int64_t elements);
/// Of one whose threads take the vectors of `rows` rows of `run` elements.
ElementwiseShape row_shape(const Problem& problem, std::int64_t rows, std::int64_t run,
                           std::string_view run_name);
/// Extents of these dimensions, as a kernel's last arguments.
void add_extents(std::vector<Argument>& arguments, const Problem& problem,
                 std::initializer_list<const char*> dimensions);

/// Uniform in (-16, 16), where activations bend and vanish.
HostTensor random_activations(const Problem& problem, const TensorSpec& spec, std::uint64_t seed);

/// Whole numbers from 0 to `most`, equal for equal seeds: positions and ids.
HostTensor random_indices(const TensorSpec& spec, std::int64_t most, std::uint64_t seed);

}  // namespace greta::kernels
