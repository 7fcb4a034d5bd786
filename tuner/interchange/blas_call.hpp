#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/catalog.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// A product that an application asked a BLAS library for, as the library has it: D =
/// epilogue(alpha op(A) op(B) + beta C), where matrices are column-major unless their order is
/// another one, op(A) is m x k, and op(B) is k x n. libgreta-capture.so records such calls
/// (docs/capture.md).
struct BlasCall {
  struct Matrix {
    std::string type;           ///< "f32", "bf16" …
    std::string order = "col";  ///< "col", "row", or the library's number of another order
    std::int64_t ld = 0;        ///< leading dimension, in elements
    std::int64_t stride = 0;    ///< from one matrix of a batch to the next, in elements
  };
  std::string library, function;  ///< "cuBLAS", "cublasGemmEx"
  char op_a = 'N', op_b = 'N';    ///< N, T or C; '?': another one
  std::int64_t m = 0, n = 0, k = 0;
  Matrix a, b, c, d;
  std::string compute;              ///< "f32", "f32_fast_tf32" …
  bool tf32 = false;                ///< the handle's math mode allows TF32
  std::string batch_kind = "none";  ///< "none", "strided", "pointers" or "grouped"
  std::int64_t batch = 1;
  /// A factor in host memory; std::nullopt with the reason why it is not known.
  struct Factor {
    std::optional<double> value;
    std::string unknown;  ///< "device": it is in device memory
    bool complex = false;
  };
  Factor alpha{1.0, "", false}, beta{0.0, "", false};
  bool out_of_place = false;  ///< D is another matrix than C
  bool scaled = false;        ///< operands have scales in device memory
  std::string epilogue = "none", bias_type;
};

/// Returns the problem of a call. Fails with the reason why GRETA has no such problem.
Result<Problem> problem_of(const BlasCall& call, const Operation& gemm);

/// Returns the call in a line, as its library writes it: "cublasGemmEx T N m=4096 n=1 k=4096 bf16".
std::string text_of(const BlasCall& call);

}  // namespace greta::tuner
