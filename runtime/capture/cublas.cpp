// cuBLAS's products. Source of names, arguments and numbers: NVIDIA's documentation of cuBLAS.
#include <cstdint>

#include "runtime/capture/gemm_functions.hpp"

using namespace greta::capture;  // the functions below are C's
using std::int64_t;

namespace {

/// Types of functions that have them as arguments, and compute in f32.
#define GRETA_CUBLAS_TYPED(NAME, I)                                                                \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,      \
                          const void* a, int a_type, I lda, const void* b, int b_type, I ldb,      \
                          const void* beta, void* c, int c_type, I ldc) {                          \
    GRETA_SYMBOL(NAME, cublas);                                                                    \
    return forward(                                                                                \
        symbol, GRETA_CALLER,                                                                      \
        [&](const Library& library) {                                                              \
          return describe_product(library, handle,                                                 \
                                  gemm_call(symbol, {a_type, b_type, c_type, compute_32f}, op_a,   \
                                            op_b, m, n, k, lda, ldb, ldc),                         \
                                  alpha, beta);                                                    \
        },                                                                                         \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc); \
  }

/// The groups of a call: for each of them its operations, extents, leading dimensions, and number
/// of products.
template <typename I>
struct Groups {
  const int *op_a, *op_b;
  const I *m, *n, *k, *lda, *ldb, *ldc;
  I count;
  const I* size;
};

/// Counts each group as a call of its own. Factors follow one another.
template <typename I>
void record_groups(const Library& library, void* handle, const Symbol& symbol, const Types& types,
                   const Groups<I>& groups, const void* alpha, const void* beta) {
  const auto scale = scale_of(types.compute, type_of(types.c));
  const std::size_t bytes = scale == r_64f ? 8 : scale == r_16f ? 2 : 4;
  for (I i = 0; i < groups.count; ++i) {
    Call call = gemm_call(symbol, types, groups.op_a[i], groups.op_b[i], groups.m[i], groups.n[i],
                          groups.k[i], groups.lda[i], groups.ldb[i], groups.ldc[i]);
    call.batch_kind = Batch::grouped;
    call.batch = groups.size[i];
    const auto at = [&](const void* factors) {
      return static_cast<const char*>(factors) + bytes * static_cast<std::size_t>(i);
    };
    count(describe_product(library, handle, call, at(alpha), at(beta)));
  }
}

#define GRETA_GROUPED_GEMM(NAME, TYPES, I)                                                        \
  GRETA_CAPTURED int NAME(void* handle, const int* op_a, const int* op_b, const I* m, const I* n, \
                          const I* k, const void* alpha, const void* a, const I* lda,             \
                          const void* b, const I* ldb, const void* beta, void* c, const I* ldc,   \
                          I count, const I* size) {                                               \
    GRETA_SYMBOL(NAME, cublas);                                                                   \
    return forward(                                                                               \
        symbol, GRETA_CALLER,                                                                     \
        [&](const Library& library) {                                                             \
          record_groups<I>(library, handle, symbol, TYPES,                                        \
                           {op_a, op_b, m, n, k, lda, ldb, ldc, count, size}, alpha, beta);       \
        },                                                                                        \
        handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, size);           \
  }

#define GRETA_GROUPED_GEMM_EX(NAME, I)                                                            \
  GRETA_CAPTURED int NAME(void* handle, const int* op_a, const int* op_b, const I* m, const I* n, \
                          const I* k, const void* alpha, const void* a, int a_type, const I* lda, \
                          const void* b, int b_type, const I* ldb, const void* beta, void* c,     \
                          int c_type, const I* ldc, I count, const I* size, int compute) {        \
    GRETA_SYMBOL(NAME, cublas);                                                                   \
    return forward(                                                                               \
        symbol, GRETA_CALLER,                                                                     \
        [&](const Library& library) {                                                             \
          record_groups<I>(library, handle, symbol,                                               \
                           {a_type, b_type, c_type, cublas_compute(compute)},                     \
                           {op_a, op_b, m, n, k, lda, ldb, ldc, count, size}, alpha, beta);       \
        },                                                                                        \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, \
        count, size, compute);                                                                    \
  }

}  // namespace

#define GRETA_CUBLAS_WIDTH(SUFFIX, I)                                                  \
  GRETA_GEMM(cublasHgemm##SUFFIX, cublas, f16_types, I)                                \
  GRETA_GEMM(cublasSgemm_v2##SUFFIX, cublas, f32_types, I)                             \
  GRETA_GEMM(cublasDgemm_v2##SUFFIX, cublas, f64_types, I)                             \
  GRETA_GEMM(cublasCgemm_v2##SUFFIX, cublas, c32_types, I)                             \
  GRETA_GEMM(cublasZgemm_v2##SUFFIX, cublas, c64_types, I)                             \
  GRETA_GEMM(cublasCgemm3m##SUFFIX, cublas, c32_types, I)                              \
  GRETA_GEMM(cublasZgemm3m##SUFFIX, cublas, c64_types, I)                              \
  GRETA_CUBLAS_TYPED(cublasSgemmEx##SUFFIX, I)                                         \
  GRETA_CUBLAS_TYPED(cublasCgemmEx##SUFFIX, I)                                         \
  GRETA_CUBLAS_TYPED(cublasCgemm3mEx##SUFFIX, I)                                       \
  GRETA_GEMM_EX(cublasGemmEx##SUFFIX, cublas, cublas_compute, I)                       \
  GRETA_BATCHED_GEMM(cublasHgemmBatched##SUFFIX, cublas, f16_types, I)                 \
  GRETA_BATCHED_GEMM(cublasSgemmBatched##SUFFIX, cublas, f32_types, I)                 \
  GRETA_BATCHED_GEMM(cublasDgemmBatched##SUFFIX, cublas, f64_types, I)                 \
  GRETA_BATCHED_GEMM(cublasCgemmBatched##SUFFIX, cublas, c32_types, I)                 \
  GRETA_BATCHED_GEMM(cublasZgemmBatched##SUFFIX, cublas, c64_types, I)                 \
  GRETA_BATCHED_GEMM(cublasCgemm3mBatched##SUFFIX, cublas, c32_types, I)               \
  GRETA_BATCHED_GEMM_EX(cublasGemmBatchedEx##SUFFIX, cublas, cublas_compute, I)        \
  GRETA_STRIDED_GEMM(cublasHgemmStridedBatched##SUFFIX, cublas, f16_types, I)          \
  GRETA_STRIDED_GEMM(cublasSgemmStridedBatched##SUFFIX, cublas, f32_types, I)          \
  GRETA_STRIDED_GEMM(cublasDgemmStridedBatched##SUFFIX, cublas, f64_types, I)          \
  GRETA_STRIDED_GEMM(cublasCgemmStridedBatched##SUFFIX, cublas, c32_types, I)          \
  GRETA_STRIDED_GEMM(cublasZgemmStridedBatched##SUFFIX, cublas, c64_types, I)          \
  GRETA_STRIDED_GEMM(cublasCgemm3mStridedBatched##SUFFIX, cublas, c32_types, I)        \
  GRETA_STRIDED_GEMM_EX(cublasGemmStridedBatchedEx##SUFFIX, cublas, cublas_compute, I) \
  GRETA_GROUPED_GEMM(cublasSgemmGroupedBatched##SUFFIX, f32_types, I)                  \
  GRETA_GROUPED_GEMM(cublasDgemmGroupedBatched##SUFFIX, f64_types, I)                  \
  GRETA_GROUPED_GEMM_EX(cublasGemmGroupedBatchedEx##SUFFIX, I)

GRETA_CUBLAS_WIDTH(, int)
GRETA_CUBLAS_WIDTH(_64, int64_t)
