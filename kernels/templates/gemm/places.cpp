#include "kernels/templates/gemm/places.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/weight_panels.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/stride_attributes.hpp"

namespace greta::kernels::gemm {
namespace {

/// Where the matrix of a product is: the distance of its lines, of the next product's matrix, and
/// how it is aligned; in elements.
struct Places {
  std::int64_t stride = 0, step = 0, offset = 0;
};

/// Returns an operand with `lines` x `length` elements, or as many for each product.
TensorSpec matrix(const Shape& s, const char* name, Role role, DType type, std::int64_t lines,
                  std::int64_t length, const Places& places) {
  const bool several = places.step > 0;
  TensorSpec spec{name, role, type, several ? s.groups * lines : lines, length};
  spec.offset = places.offset;
  if (lines > 1 && places.stride != length) spec.stride = places.stride;
  if (!several || places.step == lines * spec.row_stride()) return spec;
  if (lines == 1) {
    spec.stride = places.step;
  } else {
    spec.block_rows = lines;
    spec.block_stride = places.step;
  }
  return spec;
}

/// Checks that the matrices of a batch do not overlap: each begins after the one before, or all of
/// them are side by side between the lines of the first one.
Result<void> check_step(const Shape& s, const char* name, std::int64_t step, std::int64_t lines,
                        std::int64_t length, std::int64_t stride) {
  if (s.groups == 1 || step == 0) return {};
  const std::int64_t after = (lines - 1) * stride + length;
  const bool beside = step >= length && (s.groups - 1) * step + length <= stride;
  if (step >= after || beside) return {};
  std::string needs = fmt::format("must be at least {}", after);
  if (const std::int64_t most = (stride - length) / (s.groups - 1); most >= length)
    needs += fmt::format(", or {} to {} for matrices side by side", length, most);
  return bad_field(name, std::to_string(step), needs);
}

/// Returns the attribute for the distance of a batch's matrices. Without a batch there is none.
Attribute batch_stride(std::string name, const std::string& of, std::string packed, char matrix) {
  Attribute attribute =
      stride_attribute(std::move(name), "elements from one matrix of a batch to the next, of " + of,
                       std::move(packed), [matrix](const Problem& problem) -> std::int64_t {
                         if (problem.dim("batch", 1) == 1) return 0;
                         const Shape s = shape_of(problem);
                         if (matrix == 'a') return s.a_lines() * s.a_stride();
                         return matrix == 'b' ? s.b_lines() * s.b_stride() : s.m * s.c_stride();
                       });
  attribute.may_interleave = true;
  return attribute;
}

/// Returns the attribute for the leading dimension of a row-major matrix.
Attribute leading_dimension(std::string name, const std::string& of, std::string packed,
                            char matrix) {
  return stride_attribute(std::move(name),
                          "leading dimension: elements from one row to the next, of " + of,
                          std::move(packed), [matrix](const Problem& problem) {
                            const Shape s = shape_of(problem);
                            if (matrix == 'a') return s.a_length();
                            return matrix == 'b' ? s.b_length() : s.n;
                          });
}

/// After 64 elements, each is again at the same place among the widest loads and cache lines.
std::optional<std::string> canonical_offset(const std::string& text) {
  const auto value = whole_number(text);
  return value && *value >= 0 ? std::optional(std::to_string(*value % 64)) : std::nullopt;
}

/// Returns the attribute for how a matrix is aligned.
Attribute offset(std::string name, const std::string& of) {
  return {.name = std::move(name),
          .help = "elements from a multiple of 128 bytes to the first element, of " + of,
          .fallback = "0",
          .allowed_text = "a whole number, which is taken modulo 64",
          .canonical = canonical_offset,
          .examples = {"0", "1", "4", "8"}};
}

/// Makes a product of column-major matrices whose sides were exchanged one of row-major matrices:
/// these are the transposes, and C' = op(B)' op(A)'.
Result<void> from_columns(ProblemRequest& request) {
  for (auto& [name, value] : request.values) {
    if (name == "layout") std::reverse(value.begin(), value.end());
    if (name == "shared" && value == "b")
      return bad_field("shared", "b", "can't be A of the transposed product: B must differ");
    if (name == "prologue" && value != "none")
      return bad_field("prologue", value, "needs row-major matrices");
    if (name == "packing" && value != "rows")
      return bad_field("packing", value, "needs row-major matrices");
  }
  return {};
}

}  // namespace

std::vector<TensorSpec> tensors(const Problem& problem) {
  const Shape s = shape_of(problem);
  const Places c{s.c_stride(), s.c_step, s.c_offset};
  std::vector<TensorSpec> list{matrix(s, "A", Role::input, s.in, s.a_lines(), s.a_length(),
                                      {s.a_stride(), s.a_step, s.a_offset}),
                               matrix(s, "B", Role::input, s.in, s.b_lines(), s.b_length(),
                                      {s.b_stride(), s.b_step, s.b_offset})};
  if (s.norm) list.push_back({"weight", Role::input, s.in, 1, s.k});
  if (s.bias) list.push_back({"bias", Role::input, s.out, 1, s.products()});
  if (s.residual) list.push_back(matrix(s, "residual", Role::input, s.out, s.m, s.n, c));
  const Role role = s.beta != 0 ? Role::input_output : Role::output;
  list.push_back(matrix(s, "C", role, s.out, s.m, s.n, c));
  return list;
}

Result<void> check_apart(const Shape& s) {
  auto a = check_step(s, "a_batch_stride", s.a_step, s.a_lines(), s.a_length(), s.a_stride());
  if (!a) return a;
  auto b = check_step(s, "b_batch_stride", s.b_step, s.b_lines(), s.b_length(), s.b_stride());
  return b ? check_step(s, "c_batch_stride", s.c_step, s.m, s.n, s.c_stride()) : b;
}

Result<void> check_panels(const Problem& problem) {
  const Shape s = shape_of(problem);
  if (!s.panels) return {};
  const auto needs = [](const std::string& what) { return bad_field("packing", "panels", what); };
  if (bits_of(s.in) != 16) return needs("needs dtype f16 or bf16");
  if (!s.a_along_k || !s.b_along_k) return needs("needs layout nt");
  if (s.n % panel_rows != 0) return needs(fmt::format("needs n of a multiple of {}", panel_rows));
  constexpr std::int64_t unit = panel_unit_bytes / 2;
  if (s.k % unit != 0) return needs(fmt::format("needs k of a multiple of {}", unit));
  if (s.ldb > 0) return needs("needs packed rows, without ldb");
  if (s.b_offset % unit != 0 || s.b_step % unit != 0)
    return needs(fmt::format("needs b_offset and b_batch_stride of multiples of {}", unit));
  return {};
}

std::vector<Attribute> place_attributes() {
  const std::string c = "C, and of the residual";
  return {leading_dimension("lda", "A", "the length of a row", 'a'),
          batch_stride("a_batch_stride", "A", "rows x lda", 'a'),
          offset("a_offset", "A"),
          leading_dimension("ldb", "B", "the length of a row", 'b'),
          batch_stride("b_batch_stride", "B", "rows x ldb", 'b'),
          offset("b_offset", "B"),
          leading_dimension("ldc", c, "n", 'c'),
          batch_stride("c_batch_stride", c, "m x ldc", 'c'),
          offset("c_offset", c)};
}

Notation column_major() {
  return {.name = "order",
          .value = "column",
          .usual = "row",
          .help =
              "column: sizes, layout, leading dimensions and strides are those of column-major "
              "matrices, as in BLAS; a bias has m elements",
          .pairs = {{"m", "n"},
                    {"lda", "ldb"},
                    {"a_batch_stride", "b_batch_stride"},
                    {"a_offset", "b_offset"}},
          .translate = from_columns};
}

}  // namespace greta::kernels::gemm
