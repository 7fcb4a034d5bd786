#include <fmt/format.h>

#include <string>

#include "kernels/operations.hpp"
#include "kernels/planning/byte_format_attribute.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/scaled_gemm/inputs.hpp"
#include "kernels/templates/scaled_gemm/problem.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"

namespace greta::kernels {
namespace scaled_gemm {
namespace {

/// The value of an operand's format that is that of A.
constexpr const char* same = "same";

}  // namespace

Shape shape_of(const Problem& problem) {
  Shape shape;
  shape.m = problem.dim("m");
  shape.n = problem.dim("n");
  shape.k = problem.dim("k");
  shape.out = problem.out_dtype;
  shape.format = byte_format_from_string(problem.attribute("format", "e4m3")).value();
  shape.format_b =
      byte_format_from_string(problem.attribute("format_b", same)).value_or(shape.format);
  shape.scales = scales_from_string(problem.attribute("scales", "tensor"));
  const std::string epilogue = problem.attribute("epilogue", "none");
  shape.gate = epilogue == "swiglu" ? Gate::swiglu : epilogue == "geglu" ? Gate::geglu : Gate::none;
  return shape;
}

namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const Shape s = shape_of(problem);
  return {{"A", Role::input, DType::u8, s.m, s.bytes_a(s.k)},
          {"B", Role::input, DType::u8, s.n, s.bytes_b(s.k)},
          {"scales_a", Role::input, s.scale_type(), s.scale_rows_a(), s.scale_columns()},
          {"scales_b", Role::input, s.scale_type(), s.scale_rows_b(), s.scale_columns()},
          {"C", Role::output, s.out, s.m, s.n}};
}

Work work(const Problem& problem) {
  const Shape s = shape_of(problem);
  const double products =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  return {2 * products, operand_bytes(tensors(problem)), s.numbers()};
}

}  // namespace

Result<void> check_numbers(const Shape& s) {
  const std::string k = std::to_string(s.k);
  if (s.k % 16 != 0) {
    return bad_field("k", k, "must be a multiple of 16, so that rows of A and B are whole loads");
  }
  constexpr std::int64_t most_integers = 131056;  // of products of at most 2^14
  if (s.integers() && s.scales != Scales::block && s.k > most_integers) {
    return bad_field("k", k,
                     fmt::format("must not exceed {} with int8 and scales of tensors or rows: sums "
                                 "have 32 bits",
                                 most_integers));
  }
  return {};
}

Attribute scales_attribute(const std::string& operand) {
  return {.name = "scales",
          .help = "what shares a scale. tensor: " + operand +
                  "; row: a row of A, a row of B; block: 128 k of a row of A, 128 x 128 of B",
          .fallback = "tensor",
          .allowed = {"tensor", "row", "block"}};
}

Dimension numbers_of_line() {
  return {.name = "k",
          .help = "reduction dimension: a multiple of 16",
          .least = 16,
          .examples = {16, 32, 128, 144, 256, 416, 512, 784, 1040}};
}

namespace {

bool is_mx(ByteFormat format) {
  return format == ByteFormat::e4m3 || format == ByteFormat::e5m2 || format == ByteFormat::e2m1;
}

Result<void> check_formats(const Problem& problem) {
  const Shape s = shape_of(problem);
  const std::string format(to_string(s.format)), of_b = problem.attribute("format_b", same);
  if (!s.mx()) {
    if (s.format == ByteFormat::e2m1) return bad_field("format", format, "needs scales mx");
    return of_b == same ? Result<void>{} : bad_field("format_b", of_b, "needs scales mx");
  }
  if (!is_mx(s.format)) {
    return bad_field("format", format, "must be e4m3, e5m2 or e2m1 with scales mx");
  }
  if (of_b == format) {
    return bad_field("format_b", of_b, "is the format of A, too, which is the default");
  }
  if (s.k % mx_block == 0) return {};
  return bad_field("k", std::to_string(s.k), "must be a multiple of 32 with scales mx");
}

Result<void> check(const Problem& problem) {
  if (auto good = check_formats(problem); !good) return good;
  if (auto good = check_numbers(shape_of(problem)); !good) return good;
  return check_count(problem, "k", {"n", "k"});
}

std::vector<Attribute> attributes() {
  Attribute format = byte_format_attribute("A and B"), scales = scales_attribute("an operand");
  format.help += "; e2m1: OCP's FP4, two in a byte, with scales mx";
  format.allowed.emplace_back("e2m1");
  scales.help += "; mx: 32 k of a row, powers of two as bytes e8m0";
  scales.allowed.emplace_back("mx");
  return {format,
          scales,
          {.name = "format_b",
           .help = "with scales mx: numbers of B. same: as those of A",
           .fallback = same,
           .allowed = {same, "e4m3", "e5m2", "e2m1"}}};
}

}  // namespace
}  // namespace scaled_gemm

Operation make_scaled_gemm() {
  Operation t;
  t.name = "scaled_gemm";
  t.summary = "scaled products of fp8 or int8: C = (scales_a A) (scales_b B)^T";
  t.bound =
      "that of gemm for the scaled numbers: 8 u sqrt(K) times the root of the sum of (a b)^2, "
      "u = 2^-24; with fp8 24 x 2^-13 times that root more, for matrix cores that add with 13 "
      "bits, where subnormal numbers count as the least normal one; the output's rounding";
  t.dimensions = {
      {.name = "m", .help = "rows of C", .at_run_time = RunTimeExtent{.exact_to = 8, .steps = 8}},
      {.name = "n", .help = "columns of C, rows of B"},
      scaled_gemm::numbers_of_line()};
  t.attributes = scaled_gemm::attributes();
  t.dtypes = {{DType::bf16, DType::bf16}, {DType::f16, DType::f16}, {DType::f32, DType::f32}};
  t.sizes = {{{4096, 4096, 4096}},
             {{4096, 4096, 4096}, {{"scales", "block"}}},
             {{16, 4096, 4096}},
             {{1, 4096, 4096}, {{"scales", "row"}}},
             {{4096, 4096, 4096}, {{"format", "int8"}, {"scales", "row"}}},
             {{4096, 4096, 4096}, {{"scales", "mx"}}},
             {{4096, 4096, 4096}, {{"format", "e2m1"}, {"scales", "mx"}}},
             {{16, 4096, 4096}, {{"scales", "mx"}, {"format_b", "e2m1"}}}};
  t.variants = {scaled_gemm::tma(),         scaled_gemm::matrix(), scaled_gemm::tma_rows(),
                scaled_gemm::matrix_rows(), scaled_gemm::gemv(),   scaled_gemm::tiled(),
                scaled_gemm::vendor()};
  t.untuned = Operation::Untuned::best_predicted;
  t.check = scaled_gemm::check;
  t.shape = [](const Problem& problem) { return ProblemShape(scaled_gemm::shape_of(problem)); };
  t.work = scaled_gemm::work;
  t.input = scaled_gemm::input;
  t.harden = scaled_gemm::harden;
  t.tensors = scaled_gemm::tensors;
  t.reference = scaled_gemm_reference;
  t.fully_checked = scaled_gemm_fully_checked;
  t.stand_in = [](const Problem& problem, double fraction) {
    return shorter(problem, "n", 256, fraction);
  };
  return t;
}

}  // namespace greta::kernels
