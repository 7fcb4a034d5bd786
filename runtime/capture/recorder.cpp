#include "runtime/capture/recorder.hpp"

#include "runtime/capture/call_table.hpp"
#include "runtime/capture/message.hpp"
#include "runtime/capture/process.hpp"

namespace greta::capture {

const Family cublas{"cuBLAS", "libcublas", "cublasGetPointerMode_v2", "cublasGetMathMode",
                    nullptr,  nullptr};
const Family cublas_lt{"cuBLASLt",
                       "libcublasLt",
                       nullptr,
                       nullptr,
                       "cublasLtMatrixLayoutGetAttribute",
                       "cublasLtMatmulDescGetAttribute"};
const Family rocblas{"rocBLAS", "librocblas", "rocblas_get_pointer_mode", "rocblas_get_math_mode",
                     nullptr,   nullptr};
const Family hipblas{"hipBLAS", "libhipblas", "hipblasGetPointerMode", "hipblasGetMathMode",
                     nullptr,   nullptr};
const Family hipblas_lt{"hipBLASLt",
                        "libhipblaslt",
                        nullptr,
                        nullptr,
                        "hipblasLtMatrixLayoutGetAttribute",
                        "hipblasLtMatmulDescGetAttribute"};

thread_local int Nesting::depth_ = 0;

int report_missing(const Symbol& symbol) {
  static std::atomic<bool> reported[512];
  if (!reported[symbol.index() % 512].exchange(true)) {
    report(symbol.name(), ": was called, but no loaded library has it");
  }
  return 1;
}

Call gemm_call(const Symbol& symbol, const Types& types, int op_a, int op_b, std::int64_t m,
               std::int64_t n, std::int64_t k, std::int64_t lda, std::int64_t ldb,
               std::int64_t ldc) {
  Call call{};
  call.m = m, call.n = n, call.k = k;
  call.lda = lda, call.ldb = ldb, call.ldc = ldc, call.ldd = ldc;
  call.batch = 1;
  call.epilogue = 1;
  call.a_type = type_of(types.a), call.b_type = type_of(types.b);
  call.c_type = call.d_type = type_of(types.c);
  call.bias_type = no_type;
  call.compute = types.compute;
  call.scale = scale_of(call.compute, call.c_type);
  call.function = symbol.index();
  call.op_a = op_of(op_a), call.op_b = op_of(op_b);
  call.flags = in_place;
  return call;
}

void record(Call call, const void* alpha, const void* beta, int mode) {
  // Nothing is computed. The libraries return success for these at once.
  if (call.m <= 0 || call.n <= 0 || call.batch <= 0) return;
  FactorValue values[2];
  call.factors[alpha_factor] = read_factor(alpha, call.scale, mode, values[alpha_factor]);
  call.factors[beta_factor] = read_factor(beta, call.scale, mode, values[beta_factor]);
  if (count_call(call, values)) start_writer();
}

void record(const Library& library, void* handle, Call call, const void* alpha, const void* beta) {
  int mode = 0, math = 0;
  if (library.pointer_mode != nullptr) library.pointer_mode(handle, &mode);
  if (call.a_type == r_32f && library.math_mode != nullptr &&
      library.math_mode(handle, &math) == 0) {
    // CUBLAS_TF32_TENSOR_OP_MATH without its flags, and rocblas_xf32_xdl_math_op.
    const int allowed = library.family == &rocblas ? 1 : 3;
    if ((math & 15) == allowed) call.flags |= tf32;
  }
  record(call, alpha, beta, mode);
}

}  // namespace greta::capture
