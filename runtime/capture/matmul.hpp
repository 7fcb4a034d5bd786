#pragma once

#include "runtime/capture/recorder.hpp"

/// Products that descriptors describe: cuBLASLt's and hipBLASLt's, whose attributes have different
/// numbers.
namespace greta::capture {

/// Numbers of the attributes of a matrix's layout. -1: there is none.
struct LayoutAttributes {
  int type, order, rows, columns, ld, batch, stride, batch_mode;
};

/// Numbers of the attributes of a product.
struct MatmulAttributes {
  int compute, scale, pointer_mode, op_a, op_b, epilogue, bias_type, a_scale, b_scale, d_scale;
};

/// The arguments of a product. Layouts are the library's own descriptors.
struct Matmul {
  const void *descriptor, *alpha, *beta;
  const void *a, *b, *c, *d;    ///< layouts
  bool in_place;                ///< whether C and D are the same memory
  std::int16_t compute, scale;  ///< if the descriptor does not have them
  void* stream;
};

/// Types of a product that its descriptor does not report.
struct ProductTypes {
  std::int16_t compute = no_compute, scale = no_type;
};

/// Describes a product.
Product describe_matmul(const Symbol& symbol, const Library& library,
                        const LayoutAttributes& layout, const MatmulAttributes& attributes,
                        const Matmul& matmul);

/// Forwards a product, whose arguments are the same in both libraries, and counts it. `types`
/// returns the ProductTypes of a descriptor.
template <typename Types>
int forward_matmul(Symbol& symbol, const void* caller, const LayoutAttributes& layout,
                   const MatmulAttributes& attributes, Types types, void* handle, void* descriptor,
                   const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout,
                   const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                   const void* algorithm, void* workspace, std::size_t bytes, void* stream) {
  return forward(
      symbol, caller,
      [&](const Library& library) {
        const ProductTypes known = types(descriptor);
        return describe_matmul(symbol, library, layout, attributes,
                               {.descriptor = descriptor,
                                .alpha = alpha,
                                .beta = beta,
                                .a = a_layout,
                                .b = b_layout,
                                .c = c_layout,
                                .d = d_layout,
                                .in_place = c == d,
                                .compute = known.compute,
                                .scale = known.scale,
                                .stream = stream});
      },
      handle, descriptor, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
      algorithm, workspace, bytes, stream);
}

}  // namespace greta::capture
