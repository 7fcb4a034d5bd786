#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/planning/render.hpp"
#include "kernels/planning/stride_attributes.hpp"

/// Memory-bound operations that access each element once. Their kernels use
/// common/elementwise.{glsl,hip} and have the parameters THREADS (workgroup size), VEC (elements
/// per load) and ITEMS (vectors of each operand that a thread loads before it computes).
namespace greta::kernels {

constexpr std::int64_t largest_items = 8;

/// The properties of a problem that such a kernel needs.
struct ElementwiseShape {
  DType in = DType::f32, out = DType::f32;
  Strides strides{};
  Defines defines{};  ///< in addition to types and parameters
  std::vector<Argument> arguments{};

  /// Number of consecutive elements in every operand, which VEC must divide. 0: no restriction.
  std::int64_t run = 0;
  std::string_view run_name = "";  ///< for messages, e.g. "dim"
  int least_width = 1;             ///< minimum of VEC
  int default_width = 8;           ///< most VEC of defaults
  std::int64_t most_items = largest_items;
  std::string_view items_name = "";  ///< for messages, e.g. "heads"; empty: any ITEMS are valid
  std::function<std::int64_t(const Config&)> workgroups;
  /// How often a thread loads ITEMS vectors of which it stores one. Empty: once, and stores all.
  std::function<std::int64_t(const Config&)> rounds{};
  std::function<std::vector<Division>(const Config&)> divisions;  ///< see Variant::divisions
};

/// Sets the operation's only variant. `path` is the kernel, e.g. "add/flat" for the variant "flat".
/// `summary` describes the work of a thread in one line.
void set_elementwise(Operation& operation, std::string path, std::string summary,
                     ElementwiseShape (*shape)(const Problem&));

/// Returns the shape of a kernel whose workgroups process `elements` consecutive elements.
ElementwiseShape flat_shape(const Problem& problem, std::int64_t elements);
/// Returns the shape of a kernel whose threads process the vectors of `rows` rows of `run`
/// elements.
ElementwiseShape row_shape(const Problem& problem, std::int64_t rows, std::int64_t run,
                           std::string_view run_name);
/// Appends the extents of these dimensions to a kernel's arguments.
void add_extents(std::vector<Argument>& arguments, const Problem& problem,
                 std::initializer_list<const char*> dimensions);
/// Defines the extents of these dimensions, under their names in capitals: compilers divide by what
/// they know by multiplying, which is 5 to 20 % of a small launch, or of one of short vectors.
void add_constants(Defines& defines, const Problem& problem,
                   std::initializer_list<const char*> dimensions);

/// Returns uniform values in (-16, 16), a range in which activations are nonlinear and vanish.
HostTensor random_activations(const Problem& problem, const TensorSpec& spec, std::uint64_t seed);

/// Returns uniform integers from 0 to `most` for positions and ids. Equal seeds give equal values.
HostTensor random_indices(const TensorSpec& spec, std::int64_t most, std::uint64_t seed);

}  // namespace greta::kernels
