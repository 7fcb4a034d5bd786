#include "runtime/capture/recorder.hpp"

#include "runtime/capture/message.hpp"
#include "runtime/capture/process.hpp"

namespace greta::capture {

const Family cublas{.name = "cuBLAS",
                    .file = "libcublas",
                    .pointer_mode = "cublasGetPointerMode_v2",
                    .math_mode = "cublasGetMathMode",
                    .stream_get = "cublasGetStream_v2",
                    .events = &cuda_events};
const Family cublas_lt{.name = "cuBLASLt",
                       .file = "libcublasLt",
                       .layout_get = "cublasLtMatrixLayoutGetAttribute",
                       .matmul_get = "cublasLtMatmulDescGetAttribute",
                       .events = &cuda_events};
const Family rocblas{.name = "rocBLAS",
                     .file = "librocblas",
                     .pointer_mode = "rocblas_get_pointer_mode",
                     .math_mode = "rocblas_get_math_mode",
                     .stream_get = "rocblas_get_stream",
                     .events = &hip_events};
const Family hipblas{.name = "hipBLAS",
                     .file = "libhipblas",
                     .pointer_mode = "hipblasGetPointerMode",
                     .math_mode = "hipblasGetMathMode",
                     .stream_get = "hipblasGetStream",
                     .events = &hip_events};
const Family hipblas_lt{.name = "hipBLASLt",
                        .file = "libhipblaslt",
                        .layout_get = "hipblasLtMatrixLayoutGetAttribute",
                        .matmul_get = "hipblasLtMatmulDescGetAttribute",
                        .events = &hip_events};

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

void count(const Product& product) {
  if (product.counts && count_call(product.entry)) start_writer();
}

Product describe_product(Call call, const void* alpha, const void* beta, int mode, void* stream) {
  // Nothing is computed. The libraries return success for these at once.
  if (call.m <= 0 || call.n <= 0 || call.batch <= 0) return {};
  FactorValue values[2];
  call.factors[alpha_factor] = read_factor(alpha, call.scale, mode, values[alpha_factor]);
  call.factors[beta_factor] = read_factor(beta, call.scale, mode, values[beta_factor]);
  return {.counts = true, .entry = find_entry(call, values), .handle = nullptr, .stream = stream};
}

Product describe_product(const Library& library, void* handle, Call call, const void* alpha,
                         const void* beta) {
  int mode = 0, math = 0;
  if (library.pointer_mode != nullptr) library.pointer_mode(handle, &mode);
  if (call.a_type == r_32f && library.math_mode != nullptr &&
      library.math_mode(handle, &math) == 0) {
    // CUBLAS_TF32_TENSOR_OP_MATH without its flags, and rocblas_xf32_xdl_math_op.
    const int allowed = library.family == &rocblas ? 1 : 3;
    if ((math & 15) == allowed) call.flags |= tf32;
  }
  Product product = describe_product(call, alpha, beta, mode, nullptr);
  product.handle = handle;
  return product;
}

}  // namespace greta::capture
