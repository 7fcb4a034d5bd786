#pragma once

#include "runtime/capture/recorder.hpp"

/// The forms of functions that cuBLAS, rocBLAS and hipBLAS have in common. I: the type of extents;
/// that of functions whose names end in _64 is std::int64_t. Operations and types are enumerations,
/// and so passed as int.
namespace greta::capture {

template <typename I>
int gemm(Symbol& symbol, const void* caller, const Types& types, void* handle, int op_a, int op_b,
         I m, I n, I k, const void* alpha, const void* a, I lda, const void* b, I ldb,
         const void* beta, void* c, I ldc) {
  return forward(
      symbol, caller,
      [&](const Library& library) {
        return describe_product(library, handle,
                                gemm_call(symbol, types, op_a, op_b, m, n, k, lda, ldb, ldc), alpha,
                                beta);
      },
      handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <typename I>
int batched_gemm(Symbol& symbol, const void* caller, const Types& types, void* handle, int op_a,
                 int op_b, I m, I n, I k, const void* alpha, const void* a, I lda, const void* b,
                 I ldb, const void* beta, void* c, I ldc, I batch) {
  return forward(
      symbol, caller,
      [&](const Library& library) {
        Call call = gemm_call(symbol, types, op_a, op_b, m, n, k, lda, ldb, ldc);
        call.batch_kind = Batch::pointers;
        call.batch = batch;
        return describe_product(library, handle, call, alpha, beta);
      },
      handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch);
}

/// Adds a batch with matrices at equal distances.
inline void add_strides(Call& call, std::int64_t batch, std::int64_t a, std::int64_t b,
                        std::int64_t c, std::int64_t d) {
  call.batch_kind = Batch::strided;
  call.batch = batch;
  call.stride_a = a, call.stride_b = b, call.stride_c = c, call.stride_d = d;
}

template <typename I>
int strided_gemm(Symbol& symbol, const void* caller, const Types& types, void* handle, int op_a,
                 int op_b, I m, I n, I k, const void* alpha, const void* a, I lda,
                 std::int64_t stride_a, const void* b, I ldb, std::int64_t stride_b,
                 const void* beta, void* c, I ldc, std::int64_t stride_c, I batch) {
  return forward(
      symbol, caller,
      [&](const Library& library) {
        Call call = gemm_call(symbol, types, op_a, op_b, m, n, k, lda, ldb, ldc);
        add_strides(call, batch, stride_a, stride_b, stride_c, stride_c);
        return describe_product(library, handle, call, alpha, beta);
      },
      handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
      stride_c, batch);
}

#define GRETA_GEMM(NAME, FAMILY, TYPES, I)                                                       \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,    \
                          const void* a, I lda, const void* b, I ldb, const void* beta, void* c, \
                          I ldc) {                                                               \
    GRETA_SYMBOL(NAME, FAMILY);                                                                  \
    return gemm<I>(symbol, GRETA_CALLER, TYPES, handle, op_a, op_b, m, n, k, alpha, a, lda, b,   \
                   ldb, beta, c, ldc);                                                           \
  }

#define GRETA_BATCHED_GEMM(NAME, FAMILY, TYPES, I)                                               \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,    \
                          const void* a, I lda, const void* b, I ldb, const void* beta, void* c, \
                          I ldc, I batch) {                                                      \
    GRETA_SYMBOL(NAME, FAMILY);                                                                  \
    return batched_gemm<I>(symbol, GRETA_CALLER, TYPES, handle, op_a, op_b, m, n, k, alpha, a,   \
                           lda, b, ldb, beta, c, ldc, batch);                                    \
  }

#define GRETA_STRIDED_GEMM(NAME, FAMILY, TYPES, I)                                             \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,  \
                          const void* a, I lda, std::int64_t stride_a, const void* b, I ldb,   \
                          std::int64_t stride_b, const void* beta, void* c, I ldc,             \
                          std::int64_t stride_c, I batch) {                                    \
    GRETA_SYMBOL(NAME, FAMILY);                                                                \
    return strided_gemm<I>(symbol, GRETA_CALLER, TYPES, handle, op_a, op_b, m, n, k, alpha, a, \
                           lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);    \
  }

/// cuBLAS's and hipBLAS's functions with types as arguments. COMPUTE translates the compute type.
#define GRETA_GEMM_EX(NAME, FAMILY, COMPUTE, I)                                                   \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,     \
                          const void* a, int a_type, I lda, const void* b, int b_type, I ldb,     \
                          const void* beta, void* c, int c_type, I ldc, int compute,              \
                          int algorithm) {                                                        \
    GRETA_SYMBOL(NAME, FAMILY);                                                                   \
    return forward(                                                                               \
        symbol, GRETA_CALLER,                                                                     \
        [&](const Library& library) {                                                             \
          return describe_product(library, handle,                                                \
                                  gemm_call(symbol, {a_type, b_type, c_type, COMPUTE(compute)},   \
                                            op_a, op_b, m, n, k, lda, ldb, ldc),                  \
                                  alpha, beta);                                                   \
        },                                                                                        \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, \
        compute, algorithm);                                                                      \
  }

#define GRETA_BATCHED_GEMM_EX(NAME, FAMILY, COMPUTE, I)                                            \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,      \
                          const void* a, int a_type, I lda, const void* b, int b_type, I ldb,      \
                          const void* beta, void* c, int c_type, I ldc, I batch, int compute,      \
                          int algorithm) {                                                         \
    GRETA_SYMBOL(NAME, FAMILY);                                                                    \
    return forward(                                                                                \
        symbol, GRETA_CALLER,                                                                      \
        [&](const Library& library) {                                                              \
          Call call = gemm_call(symbol, {a_type, b_type, c_type, COMPUTE(compute)}, op_a, op_b, m, \
                                n, k, lda, ldb, ldc);                                              \
          call.batch_kind = Batch::pointers;                                                       \
          call.batch = batch;                                                                      \
          return describe_product(library, handle, call, alpha, beta);                             \
        },                                                                                         \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,  \
        batch, compute, algorithm);                                                                \
  }

#define GRETA_STRIDED_GEMM_EX(NAME, FAMILY, COMPUTE, I)                                            \
  GRETA_CAPTURED int NAME(void* handle, int op_a, int op_b, I m, I n, I k, const void* alpha,      \
                          const void* a, int a_type, I lda, std::int64_t stride_a, const void* b,  \
                          int b_type, I ldb, std::int64_t stride_b, const void* beta, void* c,     \
                          int c_type, I ldc, std::int64_t stride_c, I batch, int compute,          \
                          int algorithm) {                                                         \
    GRETA_SYMBOL(NAME, FAMILY);                                                                    \
    return forward(                                                                                \
        symbol, GRETA_CALLER,                                                                      \
        [&](const Library& library) {                                                              \
          Call call = gemm_call(symbol, {a_type, b_type, c_type, COMPUTE(compute)}, op_a, op_b, m, \
                                n, k, lda, ldb, ldc);                                              \
          add_strides(call, batch, stride_a, stride_b, stride_c, stride_c);                        \
          return describe_product(library, handle, call, alpha, beta);                             \
        },                                                                                         \
        handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, stride_a, b, b_type, ldb, stride_b,    \
        beta, c, c_type, ldc, stride_c, batch, compute, algorithm);                                \
  }

}  // namespace greta::capture
