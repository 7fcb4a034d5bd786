// cuBLASLt's product. Source of names, arguments and numbers: NVIDIA's documentation of cuBLASLt.
#include "runtime/capture/matmul.hpp"

using namespace greta::capture;  // the functions below are C's

namespace {

constexpr LayoutAttributes layout_attributes{.type = 0,
                                             .order = 1,
                                             .rows = 2,
                                             .columns = 3,
                                             .ld = 4,
                                             .batch = 5,
                                             .stride = 6,
                                             .batch_mode = 8};
constexpr MatmulAttributes matmul_attributes{.compute = 0,
                                             .scale = 1,
                                             .pointer_mode = 2,
                                             .op_a = 3,
                                             .op_b = 4,
                                             .epilogue = 7,
                                             .bias_type = 26,
                                             .a_scale = 17,
                                             .b_scale = 18,
                                             .d_scale = 20};

}  // namespace

GRETA_CAPTURED int cublasLtMatmul(void* handle, void* descriptor, const void* alpha, const void* a,
                                  void* a_layout, const void* b, void* b_layout, const void* beta,
                                  const void* c, void* c_layout, void* d, void* d_layout,
                                  const void* algorithm, void* workspace, std::size_t bytes,
                                  void* stream) {
  GRETA_SYMBOL(cublasLtMatmul, cublas_lt);
  return forward_matmul(
      symbol, GRETA_CALLER, layout_attributes, matmul_attributes,
      [](const void*) { return ProductTypes{}; }, handle, descriptor, alpha, a, a_layout, b,
      b_layout, beta, c, c_layout, d, d_layout, algorithm, workspace, bytes, stream);
}
