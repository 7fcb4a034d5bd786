#pragma once

#include <cstdint>
#include <type_traits>

namespace greta::capture {

/// How a call passes its products.
enum class Batch : std::uint8_t { none, strided, pointers, grouped };

/// What a factor, alpha or beta, is. Factors in device memory are not read.
enum class Factor : std::uint8_t { zero, one, other, device, vector, missing };

/// Names of the factors `alpha` and `beta` as indices.
enum { alpha_factor, beta_factor };

/// Bits of Call::flags.
enum : std::uint8_t {
  in_place = 1,  ///< D is C
  tf32 = 2,      ///< the handle's math mode allows TF32 (xf32)
  scaled = 4,    ///< an operand has a scale in device memory
};

/// A request for a product, as BLAS has it: D = epilogue(alpha op(A) op(B) + beta C), where
/// matrices are column-major unless their order is another one, op(A) is m x k, and op(B) is k x n.
/// Types have cuBLAS's numbers (cudaDataType_t, cublasComputeType_t) in all libraries. Calls that
/// differ in no member are counted together; there is no padding, so that bytes can be compared.
struct Call {
  std::int64_t m, n, k;
  std::int64_t lda, ldb, ldc, ldd;                         ///< leading dimensions, in elements
  std::int64_t stride_a, stride_b, stride_c, stride_d;     ///< of Batch::strided, in elements
  std::int64_t batch;                                      ///< products, at least 1
  std::int32_t epilogue;                                   ///< as cublasLtEpilogue_t; 1: none
  std::int16_t a_type, b_type, c_type, d_type, bias_type;  ///< bias_type: -1 if there is none
  std::int16_t compute, scale;                             ///< scale: the type of the factors
  std::uint16_t function;                                  ///< Symbol::index
  char op_a, op_b;                                         ///< N, T or C; '?' if unknown
  std::uint8_t order_a, order_b, order_c, order_d;         ///< as cublasLtOrder_t; 255: larger
  Batch batch_kind;
  Factor factors[2];
  std::uint8_t flags;
  std::uint8_t unused[2];
};
static_assert(std::has_unique_object_representations_v<Call> && sizeof(Call) == 128);

/// The value of a factor in host memory.
struct FactorValue {
  double real = 0, imaginary = 0;
};

}  // namespace greta::capture
