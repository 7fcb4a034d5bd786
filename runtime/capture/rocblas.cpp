// rocBLAS's products. Source of names, arguments and numbers: AMD's documentation of rocBLAS.
#include <cstdint>

#include "runtime/capture/gemm_functions.hpp"

using namespace greta::capture;  // the functions below are C's
using std::int64_t;

namespace {

/// A call whose result, D, is another matrix than C.
Call with_result(Call call, const void* c, const void* d, int d_type, int64_t ldd) {
  call.d_type = type_of(d_type);
  call.ldd = ldd;
  call.flags = static_cast<std::uint8_t>(c == d ? in_place : 0);
  return call;
}

}  // namespace

#define GRETA_ROCBLAS_GEMM_EX(NAME, I)                                                             \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,      \
                          const void* a, int a_type, I lda, const void* b, int b_type, I ldb,      \
                          const void* beta, const void* c, int c_type, I ldc, void* d, int d_type, \
                          I ldd, int compute, int algorithm, std::int32_t solution,                \
                          std::uint32_t flags) {                                                   \
    GRETA_SYMBOL(NAME, rocblas);                                                                   \
    return forward(                                                                                \
        symbol, GRETA_CALLER,                                                                      \
        [&](const Library& library) {                                                              \
          const Call call = gemm_call(symbol, {a_type, b_type, c_type, rocblas_compute(compute)},  \
                                      op_a, op_b, m, n, k, lda, ldb, ldc);                         \
          return describe_product(library, handle, with_result(call, c, d, d_type, ldd), alpha,    \
                                  beta);                                                           \
        },                                                                                         \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,  \
        d, d_type, ldd, compute, algorithm, solution, flags);                                      \
  }

#define GRETA_ROCBLAS_BATCHED_EX(NAME, I)                                                          \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,      \
                          const void* a, int a_type, I lda, const void* b, int b_type, I ldb,      \
                          const void* beta, const void* c, int c_type, I ldc, void* d, int d_type, \
                          I ldd, I batch, int compute, int algorithm, std::int32_t solution,       \
                          std::uint32_t flags) {                                                   \
    GRETA_SYMBOL(NAME, rocblas);                                                                   \
    return forward(                                                                                \
        symbol, GRETA_CALLER,                                                                      \
        [&](const Library& library) {                                                              \
          Call call = gemm_call(symbol, {a_type, b_type, c_type, rocblas_compute(compute)}, op_a,  \
                                op_b, m, n, k, lda, ldb, ldc);                                     \
          call.batch_kind = Batch::pointers;                                                       \
          call.batch = batch;                                                                      \
          return describe_product(library, handle, with_result(call, c, d, d_type, ldd), alpha,    \
                                  beta);                                                           \
        },                                                                                         \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,  \
        d, d_type, ldd, batch, compute, algorithm, solution, flags);                               \
  }

#define GRETA_ROCBLAS_STRIDED_EX(NAME, I)                                                         \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,     \
                          const void* a, int a_type, I lda, int64_t stride_a, const void* b,      \
                          int b_type, I ldb, int64_t stride_b, const void* beta, const void* c,   \
                          int c_type, I ldc, int64_t stride_c, void* d, int d_type, I ldd,        \
                          int64_t stride_d, I batch, int compute, int algorithm,                  \
                          std::int32_t solution, std::uint32_t flags) {                           \
    GRETA_SYMBOL(NAME, rocblas);                                                                  \
    return forward(                                                                               \
        symbol, GRETA_CALLER,                                                                     \
        [&](const Library& library) {                                                             \
          Call call = gemm_call(symbol, {a_type, b_type, c_type, rocblas_compute(compute)}, op_a, \
                                op_b, m, n, k, lda, ldb, ldc);                                    \
          add_strides(call, batch, stride_a, stride_b, stride_c, stride_d);                       \
          return describe_product(library, handle, with_result(call, c, d, d_type, ldd), alpha,   \
                                  beta);                                                          \
        },                                                                                        \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, stride_a, b, b_type, ldb, stride_b,   \
        beta, c, c_type, ldc, stride_c, d, d_type, ldd, stride_d, batch, compute, algorithm,      \
        solution, flags);                                                                         \
  }

#define GRETA_ROCBLAS_WIDTH(SUFFIX, I)                                             \
  GRETA_GEMM(rocblas_hgemm##SUFFIX, rocblas, f16_types, I)                         \
  GRETA_GEMM(rocblas_sgemm##SUFFIX, rocblas, f32_types, I)                         \
  GRETA_GEMM(rocblas_dgemm##SUFFIX, rocblas, f64_types, I)                         \
  GRETA_GEMM(rocblas_cgemm##SUFFIX, rocblas, c32_types, I)                         \
  GRETA_GEMM(rocblas_zgemm##SUFFIX, rocblas, c64_types, I)                         \
  GRETA_BATCHED_GEMM(rocblas_hgemm_batched##SUFFIX, rocblas, f16_types, I)         \
  GRETA_BATCHED_GEMM(rocblas_sgemm_batched##SUFFIX, rocblas, f32_types, I)         \
  GRETA_BATCHED_GEMM(rocblas_dgemm_batched##SUFFIX, rocblas, f64_types, I)         \
  GRETA_BATCHED_GEMM(rocblas_cgemm_batched##SUFFIX, rocblas, c32_types, I)         \
  GRETA_BATCHED_GEMM(rocblas_zgemm_batched##SUFFIX, rocblas, c64_types, I)         \
  GRETA_STRIDED_GEMM(rocblas_hgemm_strided_batched##SUFFIX, rocblas, f16_types, I) \
  GRETA_STRIDED_GEMM(rocblas_sgemm_strided_batched##SUFFIX, rocblas, f32_types, I) \
  GRETA_STRIDED_GEMM(rocblas_dgemm_strided_batched##SUFFIX, rocblas, f64_types, I) \
  GRETA_STRIDED_GEMM(rocblas_cgemm_strided_batched##SUFFIX, rocblas, c32_types, I) \
  GRETA_STRIDED_GEMM(rocblas_zgemm_strided_batched##SUFFIX, rocblas, c64_types, I) \
  GRETA_ROCBLAS_GEMM_EX(rocblas_gemm_ex##SUFFIX, I)                                \
  GRETA_ROCBLAS_BATCHED_EX(rocblas_gemm_batched_ex##SUFFIX, I)                     \
  GRETA_ROCBLAS_STRIDED_EX(rocblas_gemm_strided_batched_ex##SUFFIX, I)

GRETA_ROCBLAS_WIDTH(, int)
GRETA_ROCBLAS_WIDTH(_64, int64_t)
