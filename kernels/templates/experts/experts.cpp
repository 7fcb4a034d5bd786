#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/model/weight_groups.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/byte_format_attribute.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/experts/shape.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

namespace greta::kernels {
namespace experts {
namespace {

std::vector<TensorSpec> tensors(const Problem& problem) {
  const Shape s(problem);
  std::vector<TensorSpec> list{{"x", Role::input, s.in, s.tokens, s.dim},
                               {"ids", Role::input, DType::i32, s.tokens, s.top_k},
                               {"weights", Role::input, DType::f32, s.tokens, s.top_k}};
  const auto add = [&](const char* name, std::optional<WeightFormat> format, std::int64_t rows,
                       std::int64_t length, const std::optional<scaled_gemm::Shape>& scaled) {
    if (scaled) {
      list.push_back({name, Role::input, DType::u8, rows, length});
      return list.push_back({name + std::string("_scales"), Role::input, DType::f32,
                             scaled->scale_rows_b(), scaled->scale_columns()});
    }
    if (!format) return list.push_back({name, Role::input, s.in, rows, length});
    list.push_back({.name = name,
                    .dtype = DType::u8,
                    .rows = rows,
                    .cols = row_bytes(*format, length),
                    .alignment = quantized_gemm::weights_alignment(*format, length)});
    if (!s.has_scales()) return;
    list.push_back(
        {name + std::string("_scales"), Role::input, s.scales(), rows, length / s.group});
    if (!s.zeros) return;
    list.push_back({name + std::string("_zeros"), Role::input, DType::u8, rows, length / s.group});
  };
  add("gate_up", s.format, s.experts * 2 * s.hidden, s.dim, s.gate_up_lines);
  add("down", s.down_format, s.experts * s.dim, s.hidden, s.down_lines);
  list.push_back({"out", Role::output, s.out, s.tokens, s.dim});
  return list;
}

/// Only integers have groups and zero points, only matrices in blocks have different formats, and
/// only scaled ones have numbers of eight bits.
Result<void> check_formats(const Problem& problem) {
  const Shape s(problem);
  const std::string scales = problem.attribute("scales", "none");
  const std::string numbers = problem.attribute("format", "e4m3");
  if (s.scaled() && s.format) return bad_field("scales", scales, "needs weights dense");
  if (!s.scaled() && numbers != "e4m3") {
    return bad_field("format", numbers, "needs scales tensor, row or block");
  }
  if (s.panels && !s.has_scales()) {
    return bad_field("packing", "panels", "needs weights int4, int8 or mxfp4");
  }
  for (const auto& [field, usual] : {std::pair{"group", "128"}, std::pair{"zeros", "none"}}) {
    const std::string value = problem.attribute(field, usual);
    if ((!s.has_scales() || only_group(*s.format) > 0) && value != usual)
      return bad_field(field, value, "needs weights int4 or int8");
  }
  const std::string down = problem.attribute("down_weights", "same");
  if (down == "same") return {};
  if (!s.format || !in_blocks(*s.format)) {
    return bad_field("down_weights", down, "needs weights in blocks: q4_0, q8_0, q4_k or q6_k");
  }
  if (s.format != s.down_format) return {};
  return bad_field("down_weights", down, "is the format of weights, too, which is the default");
}

/// Lines of quantised matrices are whole blocks or groups.
Result<void> check(const Problem& problem) {
  const Shape s(problem);
  if (s.top_k > s.experts) {
    return bad_field("top_k", std::to_string(s.top_k),
                     fmt::format("must not exceed the {} experts", s.experts));
  }
  if (auto good = check_formats(problem); !good) return good;
  for (const auto& [name, format] :
       {std::pair{"dim", s.format}, std::pair{"hidden", s.down_format}}) {
    const std::int64_t unit = s.scaled()       ? 16
                              : !format        ? 1
                              : s.has_scales() ? s.group
                                               : block_weights(*format);
    if (problem.dim(name) % unit == 0) continue;
    return bad_field(name, std::to_string(problem.dim(name)),
                     fmt::format("must be a multiple of {}, so that lines of {}", unit,
                                 s.scaled() ? "scaled matrices are whole loads"
                                            : "quantised matrices are whole blocks or groups"));
  }
  for (const char* rows : {"dim", "hidden"}) {
    constexpr std::int64_t most = 2147483647;
    if (2 * s.experts <= most / problem.dim(rows)) continue;
    return bad_field("experts", std::to_string(s.experts),
                     fmt::format("2 x experts x {} must not exceed {}", rows, most));
  }
  return check_count(problem, "hidden", {"tokens", "top_k", "hidden"});
}

Work work(const Problem& problem) {
  const Shape s(problem);
  auto list = tensors(problem);
  const std::int64_t chosen = chosen_experts(s);
  for (TensorSpec& operand : list) {
    if (operand.name.starts_with("gate_up") || operand.name.starts_with("down"))
      operand.rows = operand.rows / s.experts * chosen;
  }
  return {6 * static_cast<double>(s.pairs()) * static_cast<double>(s.dim) *
              static_cast<double>(s.hidden),
          operand_bytes(list)};
}

/// What is left of the experts, with at least those of a token.
Problem stand_in(const Problem& problem, double fraction) {
  Problem smaller = problem;
  const auto experts = static_cast<double>(problem.dim("experts"));
  smaller.extent("experts") =
      std::max(problem.dim("top_k"), static_cast<std::int64_t>(std::ceil(experts * fraction)));
  return smaller;
}

std::vector<Attribute> attributes() {
  std::vector<std::string> formats{"dense"}, blocks{"same"};
  for (const WeightFormatTraits& format : weight_format_table) {
    formats.emplace_back(format.name);
    if (in_blocks(format.format)) blocks.emplace_back(format.name);
  }
  std::vector<Attribute> list{
      {.name = "weights",
       .help = "how gate_up and down are stored. dense: as numbers of x's type; int4, int8: "
               "integers, with scales beside them; q4_0, q8_0, q4_k, q6_k: the blocks of GGUF "
               "files; mxfp4: numbers e2m1, in groups of 32 with scales e8m0 beside them",
       .fallback = "dense",
       .allowed = formats}};
  quantized_gemm::add_group_attributes(list, "a line");
  list.push_back({.name = "down_weights",
                  .help = "how down is stored, if gate_up is in other blocks. same: as gate_up",
                  .fallback = "same",
                  .allowed = blocks});
  list.push_back(byte_format_attribute("scaled matrices"));
  list.push_back({.name = "scales",
                  .help = "what shares a scale of matrices of 8-bit numbers. tensor: an expert's "
                          "matrix; row: a row; block: 128 x 128 elements; none: matrices are not "
                          "scaled",
                  .fallback = "none",
                  .allowed = {"none", "tensor", "row", "block"}});
  list.push_back(quantized_gemm::panels_attribute("gate_up and down have"));
  return list;
}

}  // namespace

Shape::Shape(const Problem& problem)
    : in(problem.dtype),
      out(problem.out_dtype),
      tokens(problem.dim("tokens")),
      experts(problem.dim("experts")),
      top_k(problem.dim("top_k")),
      dim(problem.dim("dim")),
      hidden(problem.dim("hidden")),
      format(weight_format_from_string(problem.attribute("weights", "dense"))),
      down_format(format),
      zeros(problem.attribute("zeros", "none") == "groups"),
      panels(problem.attribute("packing", "rows") == "panels") {
  const std::string down = problem.attribute("down_weights", "same");
  if (down != "same") down_format = weight_format_from_string(down);
  if (format) group = group_length(problem, *format);
  const std::string shared = problem.attribute("scales", "none");
  if (shared == "none") return;
  scaled_gemm::Shape lines;
  lines.groups = experts;
  lines.format = byte_format_from_string(problem.attribute("format", "e4m3")).value();
  lines.scales = scaled_gemm::scales_from_string(shared);
  gate_up_lines = down_lines = lines;
  gate_up_lines->n = 2 * hidden;
  gate_up_lines->k = down_lines->n = dim;
  down_lines->k = hidden;
}

std::int64_t Shape::line_bytes(std::optional<WeightFormat> of, std::int64_t length) const {
  // Scales of blocks and of matrices are next to nothing.
  if (scaled()) return length + (gate_up_lines->scales == scaled_gemm::Scales::row ? 4 : 0);
  if (!of) return bytes_of(in, length);
  const std::int64_t beside = bytes_of(scales(), 1) + (zeros ? 1 : 0);
  return row_bytes(*of, length) + (has_scales() ? length / group * beside : 0);
}

}  // namespace experts

Operation make_experts() {
  Operation t;
  t.name = "experts";
  t.summary =
      "the feed-forward layer of a mixture of experts for few tokens: the weighted sum over a "
      "token's top_k experts of down (silu(gate x) * (up x)), which reads no other expert's "
      "matrices, also quantised and scaled ones";
  t.bound =
      "of a gate and an up u min(dim + 2, 8) sqrt(dim) times the root of the sum of (w x)^2, u = "
      "2^-24, which silu changes by its Lipschitz constant; of an expert's sum over h the root of "
      "the sum of these errors' squares, and the sum of the activation's; u (min(top_k hidden + 2, "
      "8) + 1) sqrt(top_k hidden) times the root of the sum of (weight down h)^2; the output's "
      "rounding; with quantised and scaled matrices that of the dequantised ones";
  t.out_of_range =
      "an id below 0, or not below experts, adds nothing; nor does one with a weight of 0, "
      "whatever its expert's matrices are";
  t.dimensions = {
      [] {
        Dimension tokens = run_time_tokens("rows of x and out");
        tokens.most = 64;
        return tokens;
      }(),
      {.name = "experts", .help = "number of experts", .most = 1024, .examples = {1, 2, 4, 8, 12}},
      {.name = "top_k", .help = "experts of each token", .most = 64, .examples = {1, 2, 3, 4, 8}},
      {.name = "dim",
       .help = "columns of x and out; with quantised matrices whole blocks or groups, with scaled "
               "ones a multiple of 16",
       .examples = {81, 256, 512, 768}},
      {.name = "hidden",
       .help = "gates of an expert, and as many ups; with quantised matrices whole blocks or "
               "groups, with "
               "scaled ones a multiple of 16",
       .examples = {99, 256, 512}}};
  t.attributes = experts::attributes();
  t.dtypes = {{DType::bf16, DType::bf16},
              {DType::bf16, DType::f32},
              {DType::f16, DType::f16},
              {DType::f16, DType::f32},
              {DType::f32, DType::f32}};
  t.sizes = {{{1, 8, 2, 4096, 14336}},
             {{1, 128, 8, 2048, 768}},
             {{16, 128, 8, 2048, 768}},
             {{1, 128, 8, 2048, 768}, {{"weights", "q4_k"}}},
             {{1, 128, 8, 2048, 768}, {{"weights", "q4_k"}, {"down_weights", "q6_k"}}},
             {{1, 128, 8, 2048, 768}, {{"weights", "q6_k"}, {"down_weights", "q4_k"}}},
             {{1, 8, 2, 4096, 14336}, {{"weights", "int4"}, {"zeros", "groups"}}},
             {{1, 128, 8, 2048, 768}, {{"weights", "mxfp4"}}},
             {{1, 128, 8, 2048, 768}, {{"scales", "block"}}},
             {{1, 8, 2, 4096, 14336}, {{"scales", "row"}}},
             {{3, 6, 2, 81, 99}}};
  t.variants = {experts::gemv(), experts::quantized()};
  t.check = experts::check;
  t.shape = [](const Problem& problem) { return ProblemShape(experts::Shape(problem)); };
  t.work = experts::work;
  t.input = experts::input;
  t.harden = experts::harden;
  t.tensors = experts::tensors;
  t.reference = experts_reference;
  t.stand_in = experts::stand_in;
  t.unfused = quantized_gemm::with_rows;  // by the same kernels
  return t;
}

}  // namespace greta::kernels
