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
};

/// Counts a product.
void record_matmul(const Symbol& symbol, const Library& library, const LayoutAttributes& layout,
                   const MatmulAttributes& attributes, const Matmul& matmul);

}  // namespace greta::capture
