#include <string>

#include "kernels/operations.hpp"
#include "kernels/planning/byte_format_attribute.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/templates/quantize/inputs.hpp"
#include "kernels/templates/quantize/shape.hpp"
#include "kernels/templates/quantize/variants.hpp"

namespace greta::kernels {
namespace quantize {

Shape shape_of(const Problem& problem) {
  Shape shape;
  shape.rows = problem.dim("rows");
  shape.cols = problem.dim("cols");
  shape.in = problem.dtype;
  shape.format = byte_format_from_string(problem.attribute("format", "e4m3")).value();
  const std::string scales = problem.attribute("scales", "row");
  shape.scales = scales == "tensor"  ? Scales::tensor
                 : scales == "block" ? Scales::block
                 : scales == "mx"    ? Scales::mx
                                     : Scales::row;
  const std::string fused = problem.attribute("fused", "none");
  if (fused == "rmsnorm") shape.fused = Fused::rmsnorm;
  if (fused == "layernorm") shape.fused = Fused::layernorm;
  if (fused == "add_rmsnorm") shape.fused = Fused::add_rmsnorm;
  if (fused == "silu_mul") shape.fused = Fused::silu_mul;
  shape.packed = problem.attribute("layout", "separate") == "packed";
  const std::string affine = problem.attribute("affine", "weight_bias");
  shape.weight = shape.norm() && affine != "none";
  shape.bias = shape.fused == Fused::layernorm && affine == "weight_bias";
  shape.epsilon = rows::epsilon(problem);
  shape.x_stride = problem.stride("x_stride", shape.packed_x());
  shape.q_stride = problem.stride("q_stride", shape.code_bytes());
  shape.strides = strides_of(problem);
  return shape;
}

namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const Shape s = shape_of(problem);
  const auto matrix = [&](const char* name, Role role, std::int64_t cols) {
    return TensorSpec{name, role, s.in, s.rows, cols, s.x_stride};
  };
  std::vector<TensorSpec> list;
  if (s.fused == Fused::silu_mul && !s.packed) {
    list = {matrix("gate", Role::input, s.cols), matrix("up", Role::input, s.cols)};
  } else {
    list = {matrix("X", Role::input, s.packed_x())};
  }
  if (s.fused == Fused::add_rmsnorm) list.push_back(matrix("residual", Role::input, s.cols));
  if (s.weight) list.push_back({"weight", Role::input, s.in, 1, s.cols});
  if (s.bias) list.push_back({"bias", Role::input, s.in, 1, s.cols});
  if (s.scales == Scales::tensor) list.push_back({"scale", Role::input, DType::f32, 1, 1});
  if (s.fused == Fused::add_rmsnorm) list.push_back(matrix("sum", Role::output, s.cols));
  list.push_back({"Q", Role::output, DType::u8, s.rows, s.code_bytes(), s.q_stride});
  if (s.scales != Scales::tensor) {
    const DType type = s.mx() ? DType::u8 : DType::f32;
    list.push_back({"scales", Role::output, type, s.scale_rows(), s.scale_columns()});
  }
  return list;
}

/// Operations per element: those of what is fused, a comparison and a product.
Work work(const Problem& problem) {
  constexpr double fused[] = {0, 3, 6, 4, 5};
  const Shape s = shape_of(problem);
  return work_per_element(
      tensors(problem), problem,
      2 + fused[static_cast<std::size_t>(s.fused)] + (s.weight ? 1 : 0) + (s.bias ? 1 : 0));
}

Result<void> check_format(const Shape& s) {
  const std::string format(to_string(s.format));
  const bool four = s.format == ByteFormat::e2m1;
  if (!s.mx()) return four ? bad_field("format", format, "needs scales mx") : Result<void>{};
  if (!four && s.format != ByteFormat::e4m3 && s.format != ByteFormat::e5m2) {
    return bad_field("format", format, "must be e4m3, e5m2 or e2m1 with scales mx");
  }
  if (s.cols % mx_block == 0) return {};
  return bad_field("cols", std::to_string(s.cols), "must be a multiple of 32 with scales mx");
}

/// Codes are stored in words of four, and each operand's rows begin at such words.
Result<void> check(const Problem& problem) {
  const Shape s = shape_of(problem);
  if (auto good = check_format(s); !good) return good;
  for (const auto& [name, value] :
       {std::pair{"cols", s.cols}, {"x_stride", s.x_stride}, {"q_stride", s.q_stride}}) {
    if (value % 4 != 0) {
      return bad_field(name, std::to_string(value),
                       "must be a multiple of 4: codes are stored in words of four");
    }
  }
  if (s.packed && s.fused != Fused::silu_mul) {
    return bad_field("layout", "packed", "needs fused=silu_mul, whose gate and up are packed");
  }
  const std::string epsilon = problem.attribute("epsilon", "");
  if (!epsilon.empty() && !s.norm()) {
    return bad_field("epsilon", epsilon, "needs a norm, e.g. fused=rmsnorm");
  }
  const std::string affine = problem.attribute("affine", "");
  if (!affine.empty() && s.fused != Fused::layernorm) {
    return bad_field("affine", affine, "needs fused=layernorm: RMS norms have a weight");
  }
  return {};
}

std::vector<Attribute> attributes() {
  Attribute format = byte_format_attribute("Q");
  format.help += "; e2m1: OCP's FP4, two in a byte, with scales mx";
  format.allowed.emplace_back("e2m1");
  return {format,
          {.name = "scales",
           .help = "what shares a scale. row: a row; block: 128 columns of a row; tensor: all, by "
                   "a given scale; mx: 32 columns, powers of two as bytes e8m0",
           .fallback = "row",
           .allowed = {"row", "block", "tensor", "mx"}},
          {.name = "fused",
           .help = "operation whose result is quantised, in f32. none: X itself",
           .fallback = "none",
           .allowed = {"none", "rmsnorm", "add_rmsnorm", "silu_mul", "layernorm"}},
          {.name = "layout",
           .help = "gate and up of silu_mul: separate tensors, or packed into one whose rows hold "
                   "gate, then up",
           .fallback = "separate",
           .allowed = {"separate", "packed"}},
          rows::affine_attribute("what scales and shifts a layer norm",
                                 {"weight_bias", "weight", "none"}),
          rows::epsilon_attribute(),
          stride_attribute("x_stride",
                           "elements from one row to the next, of every input that has rows and of "
                           "sum",
                           "cols, or 2 cols if gate and up are packed",
                           [](const Problem& problem) { return shape_of(problem).packed_x(); }),
          stride_attribute("q_stride", "bytes from one row of Q to the next", "cols, or half of it",
                           [](const Problem& problem) { return shape_of(problem).code_bytes(); })};
}

/// The fused operation's result is rounded to the type of X before it is quantised.
std::vector<Problem> parts(const Problem& problem) {
  const Shape s = shape_of(problem);
  if (s.fused == Fused::none) return {};
  Problem first{problem.attribute("fused", "none"), s.in, s.in, {}, problem.dims};
  Problem second = problem;
  std::erase_if(second.attributes, [](const auto& attribute) {
    const std::string& name = attribute.first;
    return name == "fused" || name == "layout" || name == "affine" || name == "epsilon" ||
           name == "x_stride";
  });
  if (s.fused == Fused::silu_mul) {
    if (s.x_stride != s.packed_x()) return {};  // silu_mul has no strides
    if (s.packed) first.attributes.emplace_back("layout", "packed");
    return {first, second};
  }
  for (const char* name : {"affine", "epsilon"}) {
    const std::string value = problem.attribute(name, "");
    if (!value.empty()) first.attributes.emplace_back(name, value);
  }
  const std::string stride = problem.attribute("x_stride", "");
  if (!stride.empty()) {
    first.attributes.emplace_back("x_stride", stride);
    if (s.fused == Fused::add_rmsnorm) {
      first.attributes.emplace_back("y_stride", stride);
      second.attributes.emplace_back("x_stride", stride);
    }
  }
  return {first, second};
}

}  // namespace
}  // namespace quantize

Operation make_quantize() {
  Operation t;
  t.name = "quantize";
  t.summary = "rows of fp8 or int8 with scales, Q = y / scale, y = X, its norm or silu_mul";
  t.bound =
      "scales: the largest y / the format's largest number within 5u and the error of y; Q: the "
      "numbers nearest to what lies within 12u and the errors of y and of scales; u = 2^-24; y's "
      "error is that of the fused operation before its result is rounded; scales mx are powers of "
      "two, and have no error but that of y";
  t.dimensions = {run_time_rows("rows of the matrix"),
                  {.name = "cols",
                   .help = "elements of a row: a multiple of 4",
                   .least = 4,
                   .examples = {4, 32, 100, 128, 132, 256, 384, 416, 1000, 1024, 2052, 4096}}};
  t.attributes = quantize::attributes();
  for (const DType type : {DType::bf16, DType::f16, DType::f32}) {
    t.dtypes.push_back({type, DType::u8});
  }
  t.sizes = {{{4096, 4096}},
             {{1, 4096}},
             {{4096, 4096}, {{"scales", "block"}}},
             {{4096, 4096}, {{"fused", "add_rmsnorm"}}},
             {{4096, 14336}, {{"fused", "silu_mul"}, {"layout", "packed"}}},
             {{1000, 1004}, {{"scales", "tensor"}}},
             {{4096, 4096}, {{"scales", "mx"}}},
             {{4096, 4096}, {{"format", "e2m1"}, {"scales", "mx"}}}};
  t.shape = [](const Problem& problem) { return ProblemShape(quantize::shape_of(problem)); };
  t.variants = quantize::variants();
  t.check = quantize::check;
  t.work = quantize::work;
  t.tensors = quantize::tensors;
  t.input = quantize::input;
  t.harden = quantize::harden;
  t.parts = quantize::parts;
  t.reference = quantize_reference;
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
