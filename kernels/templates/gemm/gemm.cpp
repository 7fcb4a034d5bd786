#include "kernels/reference/gemm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/operations.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/templates/gemm/adversarial.hpp"
#include "kernels/templates/gemm/places.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/variant.hpp"

namespace greta::kernels {
namespace {

/// Two operations for each product, and those of a norm: square, sum of squares, and product with
/// the weight.
Work work(const Problem& problem) {
  const gemm::Shape s = gemm::shape_of(problem);
  const double m = static_cast<double>(s.groups * s.m), k = static_cast<double>(s.k);
  Work least;
  least.flops = 2.0 * m * static_cast<double>(s.products()) * k + (s.norm ? 3.0 * m * k : 0);
  least.bytes = operand_bytes(gemm::tensors(problem));
  if (s.tf32x3) least.numbers = MatrixNumbers::tf32x3;
  return least;
}

/// Norms are computed where the workgroup that adds a column's products has the whole row: in
/// kernels for few rows. Tiles of many rows compute gates where gates and ups are lines of B.
Result<void> check(const Problem& problem) {
  const gemm::Shape s = gemm::shape_of(problem);
  const auto few = [&](const char* what, const char* instead) {
    return bad_field("m", std::to_string(s.m),
                     fmt::format("must be at most {} with {}; for more rows there is {}",
                                 gemm::most_gemv_rows, what, instead));
  };
  if (s.m > gemm::most_gemv_rows) {
    if (s.norm) return few("prologue rmsnorm", "the operation rmsnorm");
    if (s.gated && !s.b_along_k) {
      return few("swiglu and geglu in layouts nn and tn", "layout nt, or silu_mul");
    }
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
  if (auto apart = gemm::check_apart(s); !apart) return apart;
  if (auto panels = gemm::check_panels(problem); !panels) return panels;
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
  // Whole blocks are removed, so that alignment and edge tiles do not change. More than one block
  // of m and n remains where there was, as clusters of two of the largest tiles need, and enough of
  // k for every split (32 slices of 128).
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
    if (larger > 2 * block) {
      shrink(larger);
    } else if (k >= least_k + block) {
      shrink(k);
    } else {
      break;
    }
  }
  return smaller;
}

/// A gate and a norm change little of what a kernel for few rows reads, a batch is as many
/// products, and lines that are not packed are read like others.
Problem unfused(const Problem& problem) {
  Problem plain = problem;
  std::erase_if(plain.attributes, [](const auto& attribute) {
    const std::string& name = attribute.first;
    return name == "prologue" || name == "epsilon" || name == "shared" || name.starts_with("ld") ||
           name.ends_with("_batch_stride") || name.ends_with("_offset");
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

/// Returns the epilogue's words that stay in the product, in the operation's order.
std::string kept_epilogue(const gemm::Shape& s, bool residual, bool activation) {
  std::vector<std::string> words;
  if (s.bias) words.emplace_back("bias");
  if (residual) words.emplace_back("residual");
  if (activation && s.activation > 0) {
    const bool silu = s.activation == 1;
    words.emplace_back(s.gated ? (silu ? "swiglu" : "geglu") : (silu ? "silu" : "gelu"));
  }
  return fmt::format("{}", fmt::join(words, ","));
}

/// A norm is rmsnorm, a residual add, gelu and swiglu are operations of that kind; a bias and other
/// activations stay in the product. Results of parts are packed.
std::vector<Problem> parts(const Problem& problem) {
  const gemm::Shape s = gemm::shape_of(problem);
  if (s.several() || s.beta != 0 || s.ldc > 0 || s.lda > 0 || s.c_offset > 0) return {};
  const bool swiglu = s.gated && s.activation == 1, gelu = !s.gated && s.activation == 2;
  const bool add = s.residual && (s.activation == 0 || gelu);
  if (!s.norm && !swiglu && !gelu && !add) return {};
  std::vector<Problem> list;
  Problem product = problem;
  std::erase_if(product.attributes, [](const auto& attribute) {
    const std::string& name = attribute.first;
    return name == "epilogue" || name == "prologue" || name == "epsilon";
  });
  if (s.norm) list.push_back(rows::rmsnorm_before(problem));
  const std::string kept = kept_epilogue(s, s.residual && !add, !swiglu && !gelu);
  if (!kept.empty()) {
    const bool layout = !problem.attribute("layout", "").empty();
    product.attributes.insert(product.attributes.begin() + (layout ? 1 : 0), {"epilogue", kept});
  }
  if (swiglu) product.extent("n") = s.products();
  list.push_back(std::move(product));
  const std::vector<std::pair<std::string, std::int64_t>> matrix{{"rows", s.m}, {"cols", s.n}};
  if (add) list.push_back({"add", s.out, s.out, {}, matrix});
  if (gelu) list.push_back({"gelu", s.out, s.out, {}, matrix});
  if (swiglu) list.push_back({"silu_mul", s.out, s.out, {{"layout", "packed"}}, matrix});
  return list;
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
  t.dimensions = {
      {.name = "m",
       .help = "rows of C",
       // Kernels for few rows are specialised for m, and m is the leading dimension of
       // a transposed A.
       .at_run_time =
           RunTimeExtent{.exact_to = 8, .steps = 8, .exact_with = {"layout", {"tn", "tt"}}}},
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
      rows::prologue_attribute(),
      rows::epsilon_attribute(),
      number_attribute("alpha", "factor of the product", "1", {"1", "-0.5", "0.1"}),
      number_attribute("beta", "factor of C's old value", "0", {"0", "2", "-0.1"}),
      {.name = "math",
       .help = "tf32x3: products of f32 may be computed as three of TF32, within the same bound",
       .fallback = "exact",
       .allowed = {"exact", "tf32x3"},
       .permission = true},
      {.name = "shared",
       .help = "b: all products of a batch have the same B",
       .fallback = "none",
       .allowed = {"none", "b"}},
      {.name = "packing",
       .help = "panels: B, of layout nt, lies in panels of 16 rows, as AITER's shuffle_weight() "
               "writes it",
       .fallback = "rows",
       .allowed = {"rows", "panels"}},
  };
  for (Attribute& place : gemm::place_attributes()) t.attributes.push_back(std::move(place));
  t.notation = gemm::column_major();
  t.dtypes = {{DType::f32, DType::f32}};
  for (const DType type : narrow_types()) {
    t.dtypes.insert(t.dtypes.end(), {{type, type}, {type, DType::f32}});
  }
  t.sizes = {{{4096, 4096, 4096}}, {{1, 4096, 4096}}, {{16, 4096, 4096}},
             {{1000, 1001, 999}},  {{64, 64, 65536}}, {{512, 512, 128, 16}}};
  t.variants = {gemm::gemv(), gemm::naive(), gemm::matrix(),  gemm::tf32x3_tma(), gemm::tf32x3(),
                gemm::tma(),  gemm::tiled(), gemm::split_k(), gemm::vendor()};
  t.untuned = Operation::Untuned::best_predicted;
  t.naive = Config{"naive", {{"THREADS", 256}}};
  t.check = check;
  t.shape = [](const Problem& problem) { return ProblemShape(gemm::shape_of(problem)); };
  t.work = work;
  t.harden = gemm::harden;
  t.tensors = gemm::tensors;
  t.reference = gemm_reference;
  t.fully_checked = gemm_fully_checked;
  t.unfused = unfused;
  t.parts = parts;
  t.stand_in = stand_in;
  return t;
}

}  // namespace greta::kernels
