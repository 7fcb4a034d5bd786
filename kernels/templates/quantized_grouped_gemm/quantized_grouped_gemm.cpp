#include <algorithm>
#include <string>
#include <utility>

#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/grouped_gemm/adversarial.hpp"
#include "kernels/templates/grouped_gemm/groups.hpp"
#include "kernels/templates/grouped_gemm/shape.hpp"
#include "kernels/templates/quantized_gemm/inputs.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"

namespace greta::kernels {
namespace quantized_grouped_gemm {
namespace {

quantized_gemm::Shape shape_of(const Problem& problem) {
  quantized_gemm::Shape shape = quantized_gemm::shape_of(problem);
  static_cast<gemm::RowGroups&>(shape) = grouped_gemm::shape_of(problem);
  return shape;
}

/// The groups' rows of weights lie one after the other.
std::vector<TensorSpec> tensors(const Problem& problem) {
  const quantized_gemm::Shape s = shape_of(problem);
  std::vector<TensorSpec> list{{"A", Role::input, s.in, s.all_rows(), s.k}};
  quantized_gemm::add_weights(list, s, s.groups * s.products());
  list.push_back(grouped_gemm::rows_operand(s));
  list.push_back({"C", Role::output, s.out, s.all_rows(), s.n});
  return list;
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  return grouped_gemm::is_rows_operand(spec.name) ? grouped_gemm::rows_input(problem, spec)
                                                  : quantized_gemm::input(problem, spec, seed);
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, const InputSeed& seed) {
  quantized_gemm::harden_operands(shape_of(problem), grouped_gemm_fully_checked(problem), inputs,
                                  seed);
  grouped_gemm::harden_rows(problem, inputs, seed);
}

/// Kernels count the rows of weights of all groups in 32 bits.
Result<void> check(const Problem& problem) {
  const quantized_gemm::Shape s = shape_of(problem);
  if (auto good = quantized_gemm::check_weights(problem, s); !good) return good;
  if (auto good = quantized_gemm::check_panels(s); !good) return good;
  if (auto good = grouped_gemm::check_rows(problem); !good) return good;
  if (auto good = grouped_gemm::check_lines(problem, s.products()); !good) return good;
  return check_count(grouped_gemm::unfused(problem), "k", {"n", "k"});
}

/// Products of panels have the kernels of rows, which find bytes elsewhere.
Problem unfused(const Problem& problem) {
  const bool panels = quantized_gemm::shape_of(problem).panels;
  return panels ? quantized_gemm::with_rows(problem) : grouped_gemm::unfused(problem);
}

/// Weights as numbers, and a grouped product of these.
std::vector<Problem> parts(const Problem& problem) {
  const quantized_gemm::Shape s = shape_of(problem);
  Problem decode{"dequantize", s.in, s.in, {}, {{"rows", s.groups * s.products()}, {"cols", s.k}}};
  Problem product{"grouped_gemm", s.in, s.out, {}, problem.dims};
  for (const auto& attribute : problem.attributes) {
    const std::string& name = attribute.first;
    const bool of_weights =
        name == "weights" || name == "group" || name == "zeros" || name == "packing";
    (of_weights ? decode : product).attributes.push_back(attribute);
  }
  return {std::move(decode), std::move(product)};
}

std::vector<Attribute> attributes() {
  std::vector<Attribute> list{grouped_gemm::form_attribute()};
  for (Attribute& attribute : quantized_gemm::weight_attributes("k")) {
    list.push_back(std::move(attribute));
  }
  list.push_back(grouped_gemm::epilogue_attribute());
  list.push_back(grouped_gemm::routing_attribute());
  list.push_back(quantized_gemm::panels_attribute("each group's B has"));
  return list;
}

std::vector<Dimension> dimensions() {
  std::vector<Dimension> list = grouped_gemm::dimensions();
  list.back() = {.name = "k",
                 .help = "reduction dimension: whole blocks or groups of weights",
                 .least = 32,
                 .examples = {256, 512, 768, 1280}};
  return list;
}

}  // namespace
}  // namespace quantized_grouped_gemm

Operation make_quantized_grouped_gemm() {
  Operation t;
  t.name = "quantized_grouped_gemm";
  t.summary =
      "matrix products of groups of rows, each with quantised weights of its own, as in mixtures "
      "of experts: C = A W[group]^T, W = scale (B - zero), or act(gate) * up of it";
  t.bound =
      "that of grouped_gemm for the dequantised weights: 8 u sqrt(K) times the root of the sum of "
      "(a w)^2, u = 2^-24; for swiglu and geglu, the activation's Lipschitz constant times that, "
      "and a factor's error times the other factor; the output's rounding; rows of no group are "
      "not written";
  grouped_gemm::set_groups(t, quantized_grouped_gemm::tensors);
  t.unfused = quantized_grouped_gemm::unfused;
  t.dimensions = quantized_grouped_gemm::dimensions();
  t.attributes = quantized_grouped_gemm::attributes();
  t.dtypes = {{DType::f16, DType::f16},
              {DType::f16, DType::f32},
              {DType::bf16, DType::bf16},
              {DType::bf16, DType::f32},
              {DType::f32, DType::f32}};
  t.sizes = {{{128, 4096, 768, 2048}, {{"weights", "q4_k"}, {"epilogue", "swiglu"}}},
             {{128, 4096, 2048, 768}, {{"weights", "q6_k"}}},
             {{8, 1024, 14336, 4096}, {{"epilogue", "swiglu"}}},
             {{8, 1024, 4096, 14336}},
             {{64, 128, 2048, 7168}, {{"form", "masked"}, {"weights", "int8"}}},
             {{7, 100, 1001, 768}, {{"zeros", "groups"}, {"group", "64"}, {"routing", "skewed"}}}};
  // They read a shape with groups.
  t.variants = {quantized_gemm::tma(), quantized_gemm::matrix(), quantized_gemm::tiled()};
  t.untuned = Operation::Untuned::best_predicted;
  t.check = quantized_grouped_gemm::check;
  t.shape = [](const Problem& problem) {
    return ProblemShape(quantized_grouped_gemm::shape_of(problem));
  };
  t.input = quantized_grouped_gemm::input;
  t.harden = quantized_grouped_gemm::harden;
  t.reference = quantized_grouped_gemm_reference;
  t.parts = quantized_grouped_gemm::parts;
  return t;
}

}  // namespace greta::kernels
