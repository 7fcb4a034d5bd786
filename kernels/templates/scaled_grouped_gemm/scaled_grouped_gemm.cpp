#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/operations.hpp"
#include "kernels/planning/byte_format_attribute.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/grouped_gemm/adversarial.hpp"
#include "kernels/templates/grouped_gemm/groups.hpp"
#include "kernels/templates/grouped_gemm/shape.hpp"
#include "kernels/templates/scaled_gemm/inputs.hpp"
#include "kernels/templates/scaled_gemm/problem.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"

namespace greta::kernels {
namespace scaled_grouped_gemm {
namespace {

scaled_gemm::Shape shape_of(const Problem& problem) {
  scaled_gemm::Shape shape = scaled_gemm::shape_of(problem);
  static_cast<gemm::RowGroups&>(shape) = grouped_gemm::shape_of(problem);
  return shape;
}

/// The groups' rows of B, and their scales, lie one after the other.
std::vector<TensorSpec> tensors(const Problem& problem) {
  const scaled_gemm::Shape s = shape_of(problem);
  return {{"A", Role::input, DType::u8, s.all_rows(), s.k},
          {"B", Role::input, DType::u8, s.groups * s.products(), s.k},
          {"scales_a", Role::input, DType::f32, s.scale_rows_a(), s.scale_columns()},
          {"scales_b", Role::input, DType::f32, s.scale_rows_b(), s.scale_columns()},
          grouped_gemm::rows_operand(s),
          {"C", Role::output, s.out, s.all_rows(), s.n}};
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  return grouped_gemm::is_rows_operand(spec.name) ? grouped_gemm::rows_input(problem, spec)
                                                  : scaled_gemm::input(problem, spec, seed);
}

/// Numbers and scales of rows that belong to no group become NaN, or the integers that are largest.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, const InputSeed& seed) {
  const scaled_gemm::Shape s = shape_of(problem);
  scaled_gemm::harden_operands(s, grouped_gemm_fully_checked(problem), inputs, seed);
  const std::byte none{s.integers() ? std::uint8_t{0x80} : encode_byte(s.format, NAN)};
  for (const auto& rows : grouped_gemm::draw_groups(problem, inputs, seed)) {
    std::fill(inputs[0].data.begin() + rows.first * s.k, inputs[0].data.begin() + rows.end * s.k,
              none);
    if (s.scales != scaled_gemm::Scales::tensor) grouped_gemm::hide(inputs[2], rows);
  }
}

/// Kernels count the rows of B of all groups in 32 bits.
Result<void> check(const Problem& problem) {
  const scaled_gemm::Shape s = shape_of(problem);
  if (auto good = scaled_gemm::check_numbers(s); !good) return good;
  if (auto good = grouped_gemm::check_rows(problem); !good) return good;
  if (auto good = grouped_gemm::check_lines(problem, s.products()); !good) return good;
  return check_count(grouped_gemm::unfused(problem), "k", {"n", "k"});
}

std::vector<Dimension> dimensions() {
  std::vector<Dimension> list = grouped_gemm::dimensions();
  list.back() = scaled_gemm::numbers_of_line();
  return list;
}

/// The product, and the activation of all of its rows, which has those of no group, too.
std::vector<Problem> parts(const Problem& problem) {
  const scaled_gemm::Shape s = shape_of(problem);
  if (s.gate != scaled_gemm::Gate::swiglu) return {};  // there is no operation for geglu
  Problem product = problem;
  std::erase_if(product.attributes, [](const auto& one) { return one.first == "epilogue"; });
  product.extent("n") = s.products();
  return {std::move(product), grouped_gemm::gate_of_rows(s.out, s.all_rows(), s.n)};
}

}  // namespace
}  // namespace scaled_grouped_gemm

Operation make_scaled_grouped_gemm() {
  Operation t;
  t.name = "scaled_grouped_gemm";
  t.summary =
      "scaled products of fp8 or int8 of groups of rows, each with a B of its own, as in mixtures "
      "of experts: C = (scales_a A) (scales_b B[group])^T, or act(gate) * up of it";
  t.bound =
      "that of scaled_gemm for each group; for swiglu and geglu, the activation's Lipschitz "
      "constant times that, and a factor's error times the other factor; the output's rounding; "
      "rows of no group are not written";
  grouped_gemm::set_groups(t, scaled_grouped_gemm::tensors);
  t.work = [of_groups = t.work](const Problem& problem) {
    Work work = of_groups(problem);
    work.numbers = scaled_grouped_gemm::shape_of(problem).numbers();
    return work;
  };
  t.dimensions = scaled_grouped_gemm::dimensions();
  t.attributes = {grouped_gemm::form_attribute(), byte_format_attribute("A and B"),
                  scaled_gemm::scales_attribute("a group's rows of A, a group's B"),
                  grouped_gemm::epilogue_attribute(), grouped_gemm::routing_attribute()};
  t.dtypes = {{DType::bf16, DType::bf16}, {DType::f16, DType::f16}, {DType::f32, DType::f32}};
  t.sizes = {{{64, 32768, 2048, 7168}, {{"scales", "block"}}},
             {{64, 32768, 2048, 7168}, {{"scales", "row"}}},
             {{8, 4096, 14336, 4096}, {{"scales", "row"}, {"epilogue", "swiglu"}}},
             {{32, 256, 4096, 7168}, {{"form", "masked"}, {"scales", "block"}}},
             {{7, 1000, 1001, 1008}, {{"format", "int8"}, {"routing", "skewed"}}}};
  // They read a shape with groups.
  t.variants = {scaled_gemm::tma(), scaled_gemm::matrix(), scaled_gemm::tiled()};
  t.untuned = Operation::Untuned::best_predicted;
  t.check = scaled_grouped_gemm::check;
  t.shape = [](const Problem& problem) {
    return ProblemShape(scaled_grouped_gemm::shape_of(problem));
  };
  t.input = scaled_grouped_gemm::input;
  t.harden = scaled_grouped_gemm::harden;
  t.reference = scaled_grouped_gemm_reference;
  t.parts = scaled_grouped_gemm::parts;
  return t;
}

}  // namespace greta::kernels
