#pragma once

#include <cstdint>
#include <string>

#include "runtime/device/dtype.hpp"
#include "runtime/device/layers.hpp"

namespace greta::device {

/// What shares one of a product's scales, which are f32 numbers in device memory.
enum class MatrixScales : std::uint8_t {
  none,
  tensor,  ///< all elements of an operand
  row,     ///< a row of op(A), with m scales; a column of op(B), with n scales
  /// 128 k of a row of op(A), with ceil(k / 128) x m scales: those of neighbouring rows are
  /// neighbours. 128 k of 128 columns of op(B), with ceil(n / 128) x ceil(k / 128) scales, where
  /// rows are padded to multiples of 4 scales. Addresses are multiples of 16 bytes.
  block,
};

/// A matrix product that a vendor's library computes: D = alpha op(A) op(B) + beta C + bias. All
/// matrices are row-major. op(A) is m x k, op(B) is k x n, C and D are m x n, and
/// the bias has n elements. Sums are in f32, as are alpha and beta. Scales multiply the elements
/// of A and B. Products of i8 are sums in i32, with alpha 1, beta 0 and no bias.
struct MatrixProduct {
  std::uint64_t m = 0, n = 0, k = 0;
  DType in = DType::f16;      ///< of A and B; u8: fp8 (e4m3), which has scales
  DType out = DType::f16;     ///< of C, D and the bias; i32 of i8, and only of these
  bool transposed_a = false;  ///< A is stored as k x m
  bool transposed_b = false;  ///< B is stored as n x k
  bool bias = false;
  MatrixScales scales = MatrixScales::none;
  /// Leading dimensions in elements, C's that of D; 0: packed rows.
  std::uint64_t lda = 0, ldb = 0, ldd = 0;
  std::uint32_t alignment = 16;  ///< bytes that divide the addresses of A, B, C and D
  /// Products that have their matrices at equal distances, in elements. With one product these are
  /// not used; a distance of 0 means that all products have the same matrix. The bias is common.
  std::uint64_t batch = 1, a_step = 0, b_step = 0, d_step = 0;
  float alpha = 1, beta = 0;
  std::uint64_t workspace_bytes = 0;  ///< the most that the library may use
  /// Position of the algorithm in the library's own ranking for this problem and workspace.
  std::uint32_t rank = 0;

  /// Returns all fields as text, for content keys and messages.
  std::string text() const;
  bool operator==(const MatrixProduct&) const = default;
};

/// The argument block of a MatrixProduct's launch: device addresses. `bias`, `workspace` and those
/// of scales are 0 where there is none; `c` is that of `d` unless it is another matrix.
struct MatrixProductArguments {
  std::uint64_t a = 0, b = 0, c = 0, d = 0, bias = 0, workspace = 0;
  std::uint64_t scales_a = 0, scales_b = 0;
};

}  // namespace greta::device
