#include <algorithm>
#include <string>
#include <utility>

#include "kernels/operations.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/gemm/variant.hpp"
#include "kernels/templates/grouped_gemm/adversarial.hpp"
#include "kernels/templates/grouped_gemm/groups.hpp"
#include "kernels/templates/grouped_gemm/shape.hpp"

namespace greta::kernels {
namespace grouped_gemm {

gemm::Shape shape_of(const Problem& problem) {
  gemm::Shape shape;
  shape.m = problem.dim("m");
  shape.n = problem.dim("n");
  shape.k = problem.dim("k");
  shape.grouping = problem.attribute("form", "contiguous") == "masked" ? gemm::Grouping::masked
                                                                       : gemm::Grouping::contiguous;
  shape.groups = problem.dim("groups");
  shape.in = problem.dtype;
  shape.out = problem.out_dtype;
  shape.b_along_k = problem.attribute("layout", "nt") == "nt";
  const std::string epilogue = problem.attribute("epilogue", "none");
  shape.gated = epilogue != "none";
  if (shape.gated) shape.activation = epilogue == "swiglu" ? 1 : 2;
  return shape;
}

namespace {

/// The groups' matrices lie one after the other.
std::vector<TensorSpec> tensors(const Problem& problem) {
  const gemm::Shape s = shape_of(problem);
  return {{"A", Role::input, s.in, s.all_rows(), s.k},
          {"B", Role::input, s.in, s.groups * s.b_lines(), s.b_stride()},
          rows_operand(s),
          {"C", Role::output, s.out, s.all_rows(), s.n}};
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  return is_rows_operand(spec.name) ? rows_input(problem, spec) : random_tensor(spec, seed);
}

/// Kernels compute gates where gates and ups are lines of B.
Result<void> check(const Problem& problem) {
  const gemm::Shape shape = shape_of(problem);
  if (shape.gated && !shape.b_along_k) {
    return bad_field("layout", "nn", "must be nt with swiglu and geglu");
  }
  return check_rows(problem);
}

/// The product, and the activation of all of its rows, which has those of no group, too.
std::vector<Problem> parts(const Problem& problem) {
  const gemm::Shape s = shape_of(problem);
  if (!s.gated || s.activation != 1) return {};  // there is no operation for geglu
  Problem product = problem;
  std::erase_if(product.attributes, [](const auto& one) { return one.first == "epilogue"; });
  product.extent("n") = s.products();
  return {std::move(product), gate_of_rows(s.out, s.all_rows(), s.n)};
}

std::vector<Attribute> attributes() {
  return {form_attribute(),
          {.name = "layout",
           .help = "storage of each group's B: nt: n x k; nn: k x n",
           .fallback = "nt",
           .allowed = {"nt", "nn"}},
          epilogue_attribute(),
          routing_attribute()};
}

}  // namespace
}  // namespace grouped_gemm

Operation make_grouped_gemm() {
  Operation t;
  t.name = "grouped_gemm";
  t.summary =
      "matrix products of groups of rows, each with a B of its own, as in mixtures of experts: C = "
      "A B[group], or act(gate) * up of it; the groups' numbers of rows are in device memory";
  t.bound =
      "u min(K + 2, 8) sqrt(K) times the root of the sum of (a b)^2, u = 2^-24; for swiglu "
      "and geglu, the activation's Lipschitz constant times that, and a factor's error times the "
      "other factor; the output's rounding; rows of no group are not written";
  grouped_gemm::set_groups(t, grouped_gemm::tensors);
  t.dimensions = grouped_gemm::dimensions();
  t.attributes = grouped_gemm::attributes();
  t.dtypes = {{DType::bf16, DType::bf16},
              {DType::bf16, DType::f32},
              {DType::f16, DType::f16},
              {DType::f16, DType::f32},
              {DType::f32, DType::f32}};
  t.sizes = {{{64, 32768, 2048, 7168}},
             {{8, 2048, 14336, 4096}},
             {{64, 128, 2048, 7168}, {{"form", "masked"}}},
             {{7, 1000, 1001, 999}, {{"layout", "nn"}}},
             {{16, 100, 512, 512}, {{"routing", "skewed"}}}};
  // They read a shape with groups.
  t.variants = {gemm::naive(), gemm::tma(), gemm::matrix(), gemm::tiled()};
  t.naive = Config{"naive", {{"THREADS", 256}}};
  t.check = grouped_gemm::check;
  t.shape = [](const Problem& problem) { return ProblemShape(grouped_gemm::shape_of(problem)); };
  t.input = grouped_gemm::input;
  t.harden = grouped_gemm::harden;
  t.reference = grouped_gemm_reference;
  t.parts = grouped_gemm::parts;
  return t;
}

}  // namespace greta::kernels
