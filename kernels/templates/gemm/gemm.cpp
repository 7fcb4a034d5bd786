#include "kernels/templates/gemm/gemm.hpp"

#include <algorithm>

#include "kernels/model/embedded.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "runtime/device/hash.hpp"

namespace greta {
namespace {

Result<void> check(const Problem& problem) {
  const auto refuse = [&](std::string why) {
    return Failure{Status::invalid_argument, problem.key() + ": " + std::move(why), {}};
  };
  const KernelTemplate& gemm = gemm_template();
  if (problem.op != gemm.name) return refuse("the operation is not gemm");
  const auto same_name = [](const auto& value, const auto& known) {
    return value.first == known.name;
  };
  if (!std::equal(problem.dims.begin(), problem.dims.end(), gemm.dimensions.begin(),
                  gemm.dimensions.end(), same_name)) {
    return refuse("the dimensions must be m, n and k");
  }
  for (const auto& [name, extent] : problem.dims) {
    if (extent < 1 || extent > 0x7fffffff) return refuse(name + " must be 1 to 2147483647");
  }
  if (std::none_of(gemm.dtypes.begin(), gemm.dtypes.end(), [&](const DTypes& types) {
        return types.in == problem.dtype && types.out == problem.out_dtype;
      })) {
    return refuse("the types must be f32 to f32, f16 to f16 or f16 to f32");
  }
  for (const auto& [name, value] : problem.attributes) {
    const auto known = std::find_if(gemm.attributes.begin(), gemm.attributes.end(),
                                    [&](const Attribute& a) { return a.name == name; });
    if (known == gemm.attributes.end()) return refuse("no attribute is called " + name);
    const auto& allowed = known->allowed;
    const bool good = known->valid != nullptr
                          ? known->valid(value)
                          : std::find(allowed.begin(), allowed.end(), value) != allowed.end();
    if (!good) return refuse(name + " can't be " + value);
  }
  return {};
}

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
       "none, or a comma list of bias, residual and one of silu and gelu, in this order",
       gemm::valid_epilogue},
      {"alpha",
       "factor of the product",
       "1",
       {},
       "a finite number in its shortest form, such as 2, 0.5 or -1",
       gemm::valid_factor},
      {"beta",
       "factor of C's old value",
       "0",
       {},
       "a finite number in its shortest form, such as 2, 0.5 or -1",
       gemm::valid_factor},
  };
  t.dtypes = {{DType::f32, DType::f32}, {DType::f16, DType::f16}, {DType::f16, DType::f32}};
  t.check = check;
  t.work = work;
  t.tensors = tensors;
  t.space = space;
  t.default_config = gemm::default_config;
  t.plan = gemm::plan;
  t.naive_plan = gemm::naive_plan;
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
