#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "kernels/model/weight_groups.hpp"
#include "kernels/model/weight_panels.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/templates/quantized_gemm/inputs.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"

namespace greta::kernels {
namespace quantized_gemm {

namespace {

constexpr std::array epilogue_names{"none", "bias", "residual", "swiglu", "geglu"};

Epilogue epilogue_of(const Problem& problem) {
  const std::string name = problem.attribute("epilogue", "none");
  const auto* const found = std::find(epilogue_names.begin(), epilogue_names.end(), name);
  return static_cast<Epilogue>(found - epilogue_names.begin());
}

}  // namespace

Shape shape_of(const Problem& problem) {
  Shape shape;
  shape.epilogue = epilogue_of(problem);
  shape.m = problem.dim("m");
  shape.n = problem.dim("n");
  shape.k = problem.dim("k");
  shape.norm = problem.attribute("prologue", "none") == "rmsnorm";
  if (shape.norm) shape.epsilon = rows::epsilon(problem);
  shape.in = problem.dtype;
  shape.out = problem.out_dtype;
  shape.rounded = problem.attribute("math", "exact") == "rounded_weights";
  shape.format = weight_format_from_string(problem.attribute("weights", "int4")).value();
  shape.group = group_length(problem, shape.format);
  shape.zeros = problem.attribute("zeros", "none") == "groups";
  const auto packing = weight_packing_from_string(problem.attribute("packing", "rows")).value();
  if (in_words(packing) && !in_blocks(shape.format)) shape.packing = packing;
  shape.panels = packing == WeightPacking::panels;
  return shape;
}

std::int64_t weights_alignment(WeightFormat format, std::int64_t k) {
  return !in_blocks(format) || row_bytes(format, k) % 16 == 0 ? 16 : 2;
}

void add_group_attributes(std::vector<Attribute>& list, const std::string& line) {
  list.push_back({.name = "group",
                  .help = "weights along " + line + " that share a scale, with int4 and int8",
                  .fallback = "128",
                  .allowed = {"32", "64", "128"}});
  list.push_back({.name = "zeros",
                  .help = "groups: each group of int4 or int8 has a zero point, and integers are "
                          "unsigned; none: int4 has the zero point 8, int8 is signed",
                  .fallback = "none",
                  .allowed = {"none", "groups"}});
}

std::vector<Attribute> weight_attributes(const std::string& line) {
  std::vector<std::string> formats;
  for (const WeightFormatTraits& format : weight_format_table) formats.emplace_back(format.name);
  std::vector<Attribute> list{
      {.name = "weights",
       .help = "how B is stored. int4, int8: integers, with scales beside them; q4_0, q8_0, "
               "q4_k, q6_k: the blocks of GGUF files; mxfp4: numbers e2m1, "
               "in groups of 32 with scales e8m0 beside them",
       .fallback = "int4",
       .allowed = formats}};
  add_group_attributes(list, line);
  return list;
}

void add_weights(std::vector<TensorSpec>& list, const Shape& s, std::int64_t rows) {
  if (s.packing) {
    const PackedMatrix m = s.packed();
    list.push_back({.name = "B",
                    .dtype = DType::i32,
                    .rows = m.weight_rows(),
                    .cols = m.weight_cols(),
                    .alignment = 16});
    list.push_back({"scales", Role::input, s.scales(), m.groups(), m.n});
    if (s.zeros) list.push_back({"zeros", Role::input, DType::i32, m.groups(), m.zero_cols()});
    return;
  }
  list.push_back({.name = "B",
                  .dtype = DType::u8,
                  .rows = rows,
                  .cols = row_bytes(s.format, s.k),
                  .alignment = weights_alignment(s.format, s.k)});
  // Bytes beside the weights are loaded in pairs at most.
  const auto beside = [&](const char* name, DType type) {
    TensorSpec spec{name, Role::input, type, rows, s.row_scales()};
    if (type == DType::u8) spec.alignment = 2;
    list.push_back(spec);
  };
  if (s.group > 0) beside("scales", s.scales());
  if (s.zeros) beside("zeros", DType::u8);
}

Result<void> check_weights(const Problem& problem, const Shape& s) {
  if (in_blocks(s.format) || only_group(s.format) > 0) {
    const std::string name(traits(s.format).name);
    for (const auto& [field, usual] : {std::pair{"group", "128"}, std::pair{"zeros", "none"}}) {
      const std::string value = problem.attribute(field, usual);
      if (value != usual) {
        return bad_field(field, value,
                         fmt::format("only for int4 and int8: {} has {}", name,
                                     in_blocks(s.format) ? "blocks" : "groups of 32"));
      }
    }
  }
  const std::int64_t unit = in_blocks(s.format) ? block_weights(s.format) : s.group;
  if (s.k % unit == 0) return {};
  return bad_field("k", std::to_string(s.k),
                   fmt::format("must be a multiple of {}, so that rows of weights are whole {}",
                               unit, in_blocks(s.format) ? "blocks" : "groups"));
}

Attribute panels_attribute(const std::string& which) {
  return {.name = "packing",
          .help = "rows: " + which +
                  " rows of weights; panels: panels of 16 rows, units of 16 bytes of each row one "
                  "after the other, of int4, int8 and mxfp4",
          .fallback = "rows",
          .allowed = {"rows", "panels"}};
}

Problem with_rows(Problem problem) {
  std::erase_if(problem.attributes, [](const auto& one) { return one.first == "packing"; });
  return problem;
}

Result<void> check_panels(const Shape& s) {
  if (!s.panels) return {};
  if (in_blocks(s.format)) {
    return bad_field("packing", "panels", "needs weights int4, int8 or mxfp4");
  }
  if (s.n % panel_rows == 0) return {};
  return bad_field("n", std::to_string(s.n),
                   fmt::format("must be a multiple of {} with packing panels", panel_rows));
}

namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const Shape s = shape_of(problem);
  std::vector<TensorSpec> list{{"A", Role::input, s.in, s.m, s.k}};
  add_weights(list, s, s.products());
  if (s.norm) list.push_back({"weight", Role::input, s.in, 1, s.k});
  if (s.epilogue == Epilogue::bias) list.push_back({"bias", Role::input, s.out, 1, s.n});
  if (s.epilogue == Epilogue::residual) {
    list.push_back({"residual", Role::input, s.out, s.m, s.n});
  }
  list.push_back({"C", Role::output, s.out, s.m, s.n});
  return list;
}

Work work(const Problem& problem) {
  const Shape s = shape_of(problem);
  const double products =
      static_cast<double>(s.m) * static_cast<double>(s.products()) * static_cast<double>(s.k);
  const double norm = s.norm ? 3.0 * static_cast<double>(s.m) * static_cast<double>(s.k) : 0;
  return {2 * products + norm, operand_bytes(tensors(problem))};
}

/// Norms are computed by kernels for few rows.
Result<void> check_norm(const Problem& problem) {
  const Shape s = shape_of(problem);
  if (s.norm && s.m > most_normed_rows) {
    return bad_field("m", std::to_string(s.m),
                     fmt::format("must be at most {} with prologue rmsnorm; for more rows there is "
                                 "the operation rmsnorm",
                                 most_normed_rows));
  }
  const std::string epsilon = problem.attribute("epsilon", "");
  if (s.norm || epsilon.empty()) return {};
  return bad_field("epsilon", epsilon, "needs prologue rmsnorm");
}

/// Packed weights are integers in groups, and words have those of eight rows, or zero points.
Result<void> check_packing(const Problem& problem, const Shape& s) {
  const std::string name = problem.attribute("packing", "rows");
  if (name == "rows") return {};
  if (name == "panels") return check_panels(s);
  const bool fours = s.format == WeightFormat::int4;
  if (weight_packing_from_string(name) == WeightPacking::awq && !fours) {
    return bad_field("packing", name, "needs weights int4; gptq and gptq_v2 have int8 as well");
  }
  if (!fours && s.format != WeightFormat::int8) {
    return bad_field("packing", name, "needs weights int4 or int8");
  }
  if (s.products() % packed_rows == 0) return {};
  return bad_field("n", std::to_string(s.n),
                   fmt::format("must be a multiple of {} with packing {}",
                               s.gated() ? packed_rows / 2 : packed_rows, name));
}

Result<void> check(const Problem& problem) {
  if (auto norm = check_norm(problem); !norm) return norm;
  const Shape s = shape_of(problem);
  if (s.rounded && bits_of(s.in) != 16) {
    return bad_field("math", "rounded_weights", "needs dtype f16 or bf16");
  }
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (auto good = check_weights(problem, s); !good) return good;
  if (auto good = check_packing(problem, s); !good) return good;
  if (s.gated() && s.n > most / 2 / s.k) {
    return bad_field("k", std::to_string(s.k),
                     fmt::format("2 n x k, of gates and ups, must not exceed {}", most));
  }
  return check_count(problem, "k", {"n", "k"});
}

std::vector<Attribute> attributes() {
  std::vector<Attribute> list = weight_attributes("k");
  // The gates of geglu are those of grouped products.
  list.push_back(
      {.name = "epilogue",
       .help = "fused epilogue. swiglu: C = silu(gate) up; B has n rows of gates, then n of ups",
       .fallback = "none",
       .allowed = {epilogue_names.begin(), epilogue_names.end() - 1}});
  list.push_back(rows::prologue_attribute());
  list.push_back(rows::epsilon_attribute());
  list.push_back({.name = "math",
                  .help =
                      "rounded_weights: weights may be rounded to A's type, f16 or bf16, before "
                      "they are multiplied",
                  .fallback = "exact",
                  .allowed = {"exact", "rounded_weights"},
                  .permission = true});
  list.push_back({.name = "packing",
                  .help = "rows: B has rows of weights; panels: it has panels of 16 rows, units of "
                          "16 bytes of each row one after the other; awq, gptq, gptq_v2: B, scales "
                          "and zeros are qweight, scales and qzeros of such a checkpoint",
                  .fallback = "rows",
                  .allowed = {"rows", "panels", "awq", "gptq", "gptq_v2"}});
  return list;
}

/// Returns the problem without its prologue and epilogue, of as many rows of B.
Problem plain(const Problem& problem) {
  Problem product = problem;
  std::erase_if(product.attributes, [](const auto& attribute) {
    const std::string& name = attribute.first;
    return name == "epilogue" || name == "prologue" || name == "epsilon";
  });
  product.extent("n") = shape_of(problem).products();
  return product;
}

/// Returns a product of panels with rows, whose kernels differ only in where they find bytes; else
/// the product alone.
Problem unfused(const Problem& problem) {
  return shape_of(problem).panels ? with_rows(problem) : plain(problem);
}

/// A norm is rmsnorm, a residual add and swiglu silu_mul; a bias stays in the product.
std::vector<Problem> parts(const Problem& problem) {
  const Shape s = shape_of(problem);
  const bool add = s.epilogue == Epilogue::residual;
  if (!s.norm && !add && !s.gated()) return {};
  std::vector<Problem> list;
  if (s.norm) list.push_back(rows::rmsnorm_before(problem));
  list.push_back(plain(problem));
  if (s.epilogue == Epilogue::bias) list.back().attributes.emplace_back("epilogue", "bias");
  const std::vector<std::pair<std::string, std::int64_t>> matrix{{"rows", s.m}, {"cols", s.n}};
  if (add) list.push_back({"add", s.out, s.out, {}, matrix});
  if (s.gated()) list.push_back({"silu_mul", s.out, s.out, {{"layout", "packed"}}, matrix});
  return list;
}

}  // namespace
}  // namespace quantized_gemm

Operation make_quantized_gemm() {
  Operation t;
  t.name = "quantized_gemm";
  t.summary =
      "matrix products with quantised weights: C = norm(A) W^T + bias or residual, W = scale (B - "
      "zero)";
  t.bound =
      "that of gemm for the dequantised weights: 8 u sqrt(K) times the root of the sum of (a w)^2, "
      "u = 2^-24; u times each term of the epilogue; for swiglu a factor's error times the other "
      "factor; for prologue rmsnorm, half of min(K, 224 + max(64, K / 64)) u and 7.5 u of the "
      "product; the output's rounding. With math rounded_weights also v min(sqrt(K), 8) times that "
      "root, v the unit roundoff of A's type: once where its type has the scales, 4 times for "
      "q4_k, "
      "else twice; not for mxfp4";
  t.dimensions = {{.name = "m",
                   .help = "rows of C",
                   .examples = {1, 3, 16, 40, 130},
                   .at_run_time = RunTimeExtent{.exact_to = 8, .steps = 8}},
                  {.name = "n", .help = "columns of C"},
                  {.name = "k",
                   .help = "reduction dimension: whole blocks or groups of weights",
                   .least = 32,
                   .examples = {256, 512, 768, 1280, 2304, 4352}}};
  t.attributes = quantized_gemm::attributes();
  t.dtypes = {{DType::f16, DType::f16},
              {DType::f16, DType::f32},
              {DType::bf16, DType::bf16},
              {DType::bf16, DType::f32},
              {DType::f32, DType::f32}};
  t.sizes = {{{1, 4096, 4096}},
             {{16, 4096, 4096}},
             {{1, 22016, 4096}, {{"weights", "q4_k"}}},
             {{1, 4096, 11008}, {{"weights", "q6_k"}}},
             {{64, 4096, 1024}},
             {{512, 4096, 4096}},
             {{512, 4096, 4096}, {{"weights", "q4_k"}}},
             {{1, 11008, 4096}, {{"epilogue", "swiglu"}}},
             {{1, 12288, 4096}, {{"prologue", "rmsnorm"}}},
             {{5, 1001, 768}, {{"weights", "int8"}, {"zeros", "groups"}, {"group", "64"}}}};
  t.variants = {quantized_gemm::tma(),    quantized_gemm::matrix(),  quantized_gemm::stream(),
                quantized_gemm::digits(), quantized_gemm::cluster(), quantized_gemm::tiled(),
                quantized_gemm::gemv()};
  t.untuned = Operation::Untuned::best_predicted;
  t.check = quantized_gemm::check;
  t.shape = [](const Problem& problem) { return ProblemShape(quantized_gemm::shape_of(problem)); };
  t.work = quantized_gemm::work;
  t.input = quantized_gemm::input;
  t.harden = quantized_gemm::harden;
  t.tensors = quantized_gemm::tensors;
  t.reference = quantized_gemm_reference;
  t.fully_checked = quantized_gemm_fully_checked;
  t.unfused = quantized_gemm::unfused;
  t.parts = quantized_gemm::parts;
  t.stand_in = [](const Problem& problem, double fraction) {
    return shorter(problem, "n", 256, fraction);
  };
  return t;
}

}  // namespace greta::kernels
