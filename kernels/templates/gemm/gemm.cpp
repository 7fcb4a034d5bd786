#include "kernels/templates/gemm/gemm.hpp"

#include "kernels/model/embedded.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "runtime/device/hash.hpp"

namespace greta {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const gemm::Shape s = gemm::shape_of(problem);
  const auto spec = [](const char* name, Role role, DType type, std::int64_t rows,
                       std::int64_t cols) {
    return TensorSpec{name, role, type, rows, cols};
  };
  std::vector<TensorSpec> list;
  list.push_back(spec("A", Role::input, s.in, s.a_along_k ? s.m : s.k, s.a_stride()));
  list.push_back(spec("B", Role::input, s.in, s.b_along_k ? s.n : s.k, s.b_stride()));
  if (s.bias) list.push_back(spec("bias", Role::input, s.out, 1, s.n));
  if (s.residual) list.push_back(spec("residual", Role::input, s.out, s.m, s.n));
  list.push_back(spec("C", s.beta != 0 ? Role::input_output : Role::output, s.out, s.m, s.n));
  return list;
}

Work work(const Problem& problem) {
  Work least;
  least.flops = 2.0 * static_cast<double>(problem.dim("m")) *
                static_cast<double>(problem.dim("n")) * static_cast<double>(problem.dim("k"));
  for (const TensorSpec& tensor : tensors(problem)) {
    least.bytes +=
        static_cast<double>(tensor.bytes()) * (tensor.role == Role::input_output ? 2 : 1);
  }
  return least;
}

Space space(const Problem& problem, const DeviceInfo& device) {
  return Space(gemm::alternatives(gemm::shape_of(problem), device));
}

std::string key() {
  Hash hash;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path.starts_with("gemm/") || file.path.starts_with("common/")) {
      hash.add(file.path).add(file.text);
    }
  }
  return hash.hex();
}

KernelTemplate make_template() {
  KernelTemplate t;
  t.name = "gemm";
  t.summary = "matrix product, C = act(alpha * A B + bias + residual + beta * C)";
  t.dimensions = {{"m", "rows of C"}, {"n", "columns of C"}, {"k", "length of the dot products"}};
  t.attributes = {
      {"layout",
       "how A and B are stored: n as they are, t transposed",
       "nn",
       {"nn", "nt", "tn"},
       "",
       nullptr},
      {"epilogue",
       "what is fused behind the product",
       "none",
       {},
       "none, or a comma list of bias, residual and one of silu and gelu",
       gemm::canonical_epilogue},
      {"alpha", "factor of the product", "1", {}, "a finite number", gemm::canonical_factor},
      {"beta", "factor of C's old value", "0", {}, "a finite number", gemm::canonical_factor},
  };
  t.dtypes = {{DType::f32, DType::f32}, {DType::f16, DType::f16}, {DType::f16, DType::f32}};
  t.work = work;
  t.tensors = tensors;
  t.space = space;
  t.default_config = gemm::default_config;
  t.plan = gemm::plan;
  t.naive = gemm::naive_config();
  t.reference = gemm_reference;
  t.stand_in = gemm::stand_in;
  t.key = key;
  return t;
}

}  // namespace

const KernelTemplate& gemm_template() {
  static const KernelTemplate instance = make_template();
  return instance;
}

}  // namespace greta
