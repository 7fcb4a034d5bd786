#include "kernels/reference/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/operations.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/templates/gemm/adversarial.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/variant.hpp"

namespace greta::kernels {
namespace {

/// Where the matrix of a product is: the distance of its lines, of the next product's matrix, and how
/// it is aligned; in elements.
struct Places {
  std::int64_t stride = 0, step = 0, offset = 0;
};

/// Returns an operand with `lines` x `length` elements, or as many for each product.
TensorSpec matrix(const gemm::Shape& s, const char* name, Role role, DType type, std::int64_t lines,
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

/// The matrices of a batch are blocks of rows.
std::vector<TensorSpec> tensors(const Problem& problem) {
  const gemm::Shape s = gemm::shape_of(problem);
  const Places c{s.c_stride(), s.c_step, s.c_offset};
  std::vector<TensorSpec> list{
      matrix(s, "A", Role::input, s.in, s.a_lines(), s.a_length(),
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

/// Two operations for each product, and those of a norm: square, sum of squares, and product with
/// the weight.
Work work(const Problem& problem) {
  const gemm::Shape s = gemm::shape_of(problem);
  const double m = static_cast<double>(s.groups * s.m), k = static_cast<double>(s.k);
  Work least;
  least.flops = 2.0 * m * static_cast<double>(s.products()) * k + (s.norm ? 3.0 * m * k : 0);
  least.bytes = operand_bytes(tensors(problem));
  return least;
}

/// Checks that the matrices of a batch do not overlap: each begins after the one before, or all of
/// them are side by side between the lines of the first one.
Result<void> check_step(const gemm::Shape& s, const char* name, std::int64_t step,
                        std::int64_t lines, std::int64_t length, std::int64_t stride) {
  if (s.groups == 1 || step == 0) return {};
  const std::int64_t after = (lines - 1) * stride + length;
  const bool beside = step >= length && (s.groups - 1) * step + length <= stride;
  if (step >= after || beside) return {};
  return bad_field(name, std::to_string(step),
                   fmt::format("must be at least {}, or {} to {} for matrices side by side in rows "
                               "of {}",
                               after, length, (stride - length) / (s.groups - 1), stride));
}

Result<void> check_steps(const gemm::Shape& s) {
  auto a = check_step(s, "a_batch_stride", s.a_step, s.a_lines(), s.a_length(), s.a_stride());
  if (!a) return a;
  auto b = check_step(s, "b_batch_stride", s.b_step, s.b_lines(), s.b_length(), s.b_stride());
  return b ? check_step(s, "c_batch_stride", s.c_step, s.m, s.n, s.c_stride()) : b;
}

/// Norms and gates are computed where the workgroup that adds a column's products has the whole
/// row: in kernels for few rows.
Result<void> check(const Problem& problem) {
  const gemm::Shape s = gemm::shape_of(problem);
  const auto few = [&](const char* what, const char* instead) {
    return bad_field("m", std::to_string(s.m),
                     fmt::format("must be at most {} with {}; for more rows there is {}",
                                 gemm::most_gemv_rows, what, instead));
  };
  if (s.m > gemm::most_gemv_rows) {
    if (s.norm) return few("prologue rmsnorm", "the operation rmsnorm");
    if (s.gated) return few("swiglu and geglu", "silu_mul");
  }
  if (s.gated && s.beta != 0) {
    return bad_field("beta", problem.attribute("beta", "0"), "must be 0 with swiglu and geglu");
  }
  for (const char* name : {"a_batch_stride", "b_batch_stride", "c_batch_stride", "shared"}) {
    const std::string said = problem.attribute(name, "");
    if (s.groups == 1 && !said.empty()) return bad_field(name, said, "needs batch");
  }
  if (s.b_step == 0 && !problem.attribute("b_batch_stride", "").empty()) {
    return bad_field("shared", "b", "must be none with b_batch_stride");
  }
  if (auto steps = check_steps(s); !steps) return steps;
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (s.groups > 1 && s.groups > most / (s.m + 256)) {
    return bad_field("batch", std::to_string(s.groups), "batch x (m + 256) must be below 2^31");
  }
  if (s.tf32x3 && s.in != DType::f32) return bad_field("math", "tf32x3", "needs dtype f32");
  const std::string epsilon = problem.attribute("epsilon", "");
  if (!s.norm && !epsilon.empty()) {
    return bad_field("epsilon", epsilon, "needs prologue rmsnorm");
  }
  return {};
}

Problem stand_in(const Problem& problem, double fraction) {
  // Whole blocks are removed, so that alignment and edge tiles do not change. At least one block of
  // m and n remains, and enough of k for every split (32 slices of 128).
  constexpr std::int64_t block = 256, least_k = 4096;
  Problem smaller = problem;
  if (const std::int64_t batch = problem.dim("batch", 1); batch > 2) {
    // Of a batch, at least two products remain, as one has other kernels.
    const auto products =
        std::max<std::int64_t>(2, std::llround(fraction * static_cast<double>(batch)));
    smaller.extent("batch") = products;
    fraction *= static_cast<double>(batch) / static_cast<double>(products);
    if (fraction >= 1) return smaller;
  }
  std::int64_t &m = smaller.extent("m"), &n = smaller.extent("n"), &k = smaller.extent("k");
  const auto work = [&] {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  };
  const auto shrink = [](std::int64_t& extent) {
    extent -= block * std::max<std::int64_t>(1, extent / block / 8);
  };
  const double target = fraction * work();
  while (work() > target) {
    std::int64_t& larger = m > n ? m : n;
    if (larger >= 2 * block) {
      shrink(larger);
    } else if (k >= least_k + block) {
      shrink(k);
    } else {
      break;
    }
  }
  return smaller;
}

/// A gate and a norm change little of what a kernel for few rows reads, a batch is as many products,
/// and lines that are not packed are read like others.
Problem unfused(const Problem& problem) {
  Problem plain = problem;
  std::erase_if(plain.attributes, [](const auto& attribute) {
    const std::string& name = attribute.first;
    return name == "prologue" || name == "epsilon" || name == "shared" ||
           name.starts_with("ld") || name.ends_with("_batch_stride") || name.ends_with("_offset");
  });
  std::erase_if(plain.dims, [](const auto& dim) { return dim.first == "batch"; });
  const gemm::Shape s = gemm::shape_of(problem);
  if (!s.gated) return plain;
  std::erase_if(plain.attributes,
                [](const auto& attribute) { return attribute.first == "epilogue"; });
  if (s.bias) {  // in the operation's order: behind the layout
    const bool first = plain.attributes.empty() || plain.attributes.front().first != "layout";
    plain.attributes.insert(plain.attributes.begin() + (first ? 0 : 1), {"epilogue", "bias"});
  }
  plain.extent("n") = s.products();
  return plain;
}

/// Returns the attribute for the distance of a batch's matrices. Without a batch there is none.
Attribute batch_stride(std::string name, const std::string& of, std::string packed, char matrix) {
  Attribute attribute = stride_attribute(
      std::move(name), "elements from one matrix of a batch to the next, of " + of,
      std::move(packed), [matrix](const Problem& problem) -> std::int64_t {
        if (problem.dim("batch", 1) == 1) return 0;
        const gemm::Shape s = gemm::shape_of(problem);
        if (matrix == 'a') return s.a_lines() * s.a_stride();
        return matrix == 'b' ? s.b_lines() * s.b_stride() : s.m * s.c_stride();
      });
  attribute.may_interleave = true;
  return attribute;
}

/// Returns the attribute for the leading dimension of a row-major matrix.
Attribute leading_dimension(std::string name, const std::string& of, std::string packed,
                            char matrix) {
  return stride_attribute(std::move(name), "leading dimension: elements from one row to the next, of " + of,
                          std::move(packed), [matrix](const Problem& problem) {
                            const gemm::Shape s = gemm::shape_of(problem);
                            if (matrix == 'a') return s.a_length();
                            return matrix == 'b' ? s.b_length() : s.n;
                          });
}

/// All elements are at multiples of 256 bytes again after 256 of them.
std::optional<std::string> canonical_offset(const std::string& text) {
  const auto value = whole_number(text);
  return value && *value >= 0 ? std::optional(std::to_string(*value % 256)) : std::nullopt;
}

/// Returns the attribute for how a matrix is aligned.
Attribute offset(std::string name, const std::string& of) {
  return {.name = std::move(name),
          .help = "elements from a multiple of 256 bytes to the first element, of " + of,
          .fallback = "0",
          .allowed_text = "a whole number, which is taken modulo 256",
          .canonical = canonical_offset,
          .examples = {"0", "1", "4", "8"}};
}

}  // namespace

Operation make_gemm() {
  Operation t;
  t.name = "gemm";
  t.summary = "matrix product, C = act(alpha * norm(A) B + bias + residual + beta * C)";
  t.bound =
      "u min(K + 2, 8) sqrt(K) times the root of the sum of (a b)^2 for the product, u = 2^-24; u "
      "times each term of the epilogue; an activation's Lipschitz constant times that; for swiglu "
      "and geglu, a factor's error times the other factor; for prologue rmsnorm, half of "
      "min(K, 224 + max(64, K / 64)) u and 7.5 u of the product; the output's rounding";
  t.dimensions = {{.name = "m",
                   .help = "rows of C",
                   // Kernels for few rows are specialised for m, and m is the leading dimension of
                   // a transposed A.
                   .at_run_time = RunTimeExtent{.exact_to = 8, .exact_with = {"layout", {"tn", "tt"}}}},
                  {.name = "n", .help = "columns of C"},
                  {.name = "k", .help = "reduction dimension: length of the dot products"},
                  {.name = "batch",
                   .help = "products, each of an A, a B and a C of its own",
                   .fallback = "1",
                   .examples = {2, 3, 5},
                   .at_run_time = RunTimeExtent{},
                   .optional = true}};
  t.attributes = {
      {.name = "layout",
       .help = "storage of A and B: n not transposed, t transposed",
       .fallback = "nn",
       .allowed = {"nn", "nt", "tn", "tt"}},
      {.name = "epilogue",
       .help = "fused epilogue",
       .fallback = "none",
       .allowed_text = "none, or a comma list of bias, residual and one of silu and gelu, or of "
                       "bias and one of swiglu and geglu",
       .canonical = gemm::canonical_epilogue,
       .examples = {"none", "bias", "residual", "silu", "gelu", "bias,silu", "residual,gelu",
                    "bias,residual", "bias,residual,silu", "bias,residual,gelu", "swiglu", "geglu",
                    "bias,swiglu", "bias,geglu"}},
      {.name = "prologue",
       .help = "what is done to A's rows first; rmsnorm: A / sqrt(mean(A^2) + epsilon) * weight",
       .fallback = "none",
       .allowed = {"none", "rmsnorm"}},
      rows::epsilon_attribute(),
      number_attribute("alpha", "factor of the product", "1", {"1", "-0.5"}),
      number_attribute("beta", "factor of C's old value", "0", {"0", "2"}),
      {.name = "math",
       .help = "tf32x3: products of f32 may be computed as three of TF32, within the same bound",
       .fallback = "exact",
       .allowed = {"exact", "tf32x3"}},
      {.name = "shared",
       .help = "b: all products of a batch have the same B",
       .fallback = "none",
       .allowed = {"none", "b"}},
      leading_dimension("lda", "A", "k, or m if A is transposed", 'a'),
      batch_stride("a_batch_stride", "A", "rows x lda", 'a'),
      offset("a_offset", "A"),
      leading_dimension("ldb", "B", "n, or k if B is transposed", 'b'),
      batch_stride("b_batch_stride", "B", "rows x ldb", 'b'),
      offset("b_offset", "B"),
      leading_dimension("ldc", "C, and of the residual", "n", 'c'),
      batch_stride("c_batch_stride", "C, and of the residual", "m x ldc", 'c'),
      offset("c_offset", "C, and of the residual"),
  };
  t.dtypes = {{DType::f32, DType::f32}};
  for (const DType type : narrow_types()) {
    t.dtypes.insert(t.dtypes.end(), {{type, type}, {type, DType::f32}});
  }
  t.sizes = {{{4096, 4096, 4096}}, {{1, 4096, 4096}}, {{16, 4096, 4096}},
             {{1000, 1001, 999}},  {{64, 64, 65536}}, {{512, 512, 128, 16}}};
  t.variants = {gemm::gemv(), gemm::naive(), gemm::matrix(),  gemm::tf32x3(), gemm::tf32x3_tma(),
                gemm::tma(),  gemm::tiled(), gemm::split_k(), gemm::vendor()};
  t.untuned = Operation::Untuned::best_predicted;
  t.naive = Config{"naive", {{"THREADS", 256}}};
  t.check = check;
  t.shape = [](const Problem& problem) { return ProblemShape(gemm::shape_of(problem)); };
  t.work = work;
  t.harden = gemm::harden;
  t.tensors = tensors;
  t.reference = gemm_reference;
  t.fully_checked = gemm_fully_checked;
  t.unfused = unfused;
  t.stand_in = stand_in;
  return t;
}

}  // namespace greta::kernels
