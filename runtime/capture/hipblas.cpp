// hipBLAS's products. Source of names, arguments and numbers: AMD's documentation of hipBLAS.
#include <cstdint>

#include "runtime/capture/gemm_functions.hpp"

using namespace greta::capture;  // the functions below are C's
using std::int64_t;

/// As the functions without flags, with one more argument at the end.
#define GRETA_HIPBLAS_WITH_FLAGS(NAME, I)                                                          \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,      \
                          const void* a, int a_type, I lda, const void* b, int b_type, I ldb,      \
                          const void* beta, void* c, int c_type, I ldc, int compute,               \
                          int algorithm, int flags) {                                              \
    GRETA_SYMBOL(NAME, hipblas);                                                                   \
    return forward(                                                                                \
        symbol, GRETA_CALLER,                                                                      \
        [&](const Library& library) {                                                              \
          return describe_product(                                                                 \
              library, handle,                                                                     \
              gemm_call(symbol, {a_type, b_type, c_type, hipblas_compute(compute)}, op_a, op_b, m, \
                        n, k, lda, ldb, ldc),                                                      \
              alpha, beta);                                                                        \
        },                                                                                         \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,  \
        compute, algorithm, flags);                                                                \
  }

#define GRETA_HIPBLAS_WIDTH(SUFFIX, I)                                                    \
  GRETA_GEMM(hipblasHgemm##SUFFIX, hipblas, f16_types, I)                                 \
  GRETA_GEMM(hipblasSgemm##SUFFIX, hipblas, f32_types, I)                                 \
  GRETA_GEMM(hipblasDgemm##SUFFIX, hipblas, f64_types, I)                                 \
  GRETA_GEMM(hipblasCgemm##SUFFIX, hipblas, c32_types, I)                                 \
  GRETA_GEMM(hipblasZgemm##SUFFIX, hipblas, c64_types, I)                                 \
  GRETA_BATCHED_GEMM(hipblasHgemmBatched##SUFFIX, hipblas, f16_types, I)                  \
  GRETA_BATCHED_GEMM(hipblasSgemmBatched##SUFFIX, hipblas, f32_types, I)                  \
  GRETA_BATCHED_GEMM(hipblasDgemmBatched##SUFFIX, hipblas, f64_types, I)                  \
  GRETA_BATCHED_GEMM(hipblasCgemmBatched##SUFFIX, hipblas, c32_types, I)                  \
  GRETA_BATCHED_GEMM(hipblasZgemmBatched##SUFFIX, hipblas, c64_types, I)                  \
  GRETA_STRIDED_GEMM(hipblasHgemmStridedBatched##SUFFIX, hipblas, f16_types, I)           \
  GRETA_STRIDED_GEMM(hipblasSgemmStridedBatched##SUFFIX, hipblas, f32_types, I)           \
  GRETA_STRIDED_GEMM(hipblasDgemmStridedBatched##SUFFIX, hipblas, f64_types, I)           \
  GRETA_STRIDED_GEMM(hipblasCgemmStridedBatched##SUFFIX, hipblas, c32_types, I)           \
  GRETA_STRIDED_GEMM(hipblasZgemmStridedBatched##SUFFIX, hipblas, c64_types, I)           \
  GRETA_GEMM_EX(hipblasGemmEx##SUFFIX, hipblas, hipblas_compute, I)                       \
  GRETA_BATCHED_GEMM_EX(hipblasGemmBatchedEx##SUFFIX, hipblas, hipblas_compute, I)        \
  GRETA_STRIDED_GEMM_EX(hipblasGemmStridedBatchedEx##SUFFIX, hipblas, hipblas_compute, I) \
  GRETA_HIPBLAS_WITH_FLAGS(hipblasGemmExWithFlags##SUFFIX, I)

GRETA_HIPBLAS_WIDTH(, int)
GRETA_HIPBLAS_WIDTH(_64, int64_t)

// Names of the same functions while both versions of their types existed.
GRETA_GEMM_EX(hipblasGemmEx_v2, hipblas, hipblas_compute, int)
GRETA_BATCHED_GEMM_EX(hipblasGemmBatchedEx_v2, hipblas, hipblas_compute, int)
GRETA_STRIDED_GEMM_EX(hipblasGemmStridedBatchedEx_v2, hipblas, hipblas_compute, int)
GRETA_HIPBLAS_WITH_FLAGS(hipblasGemmExWithFlags_v2, int)
