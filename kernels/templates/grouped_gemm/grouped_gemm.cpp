#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/gemm/variant.hpp"
#include "kernels/templates/grouped_gemm/adversarial.hpp"
#include "kernels/templates/grouped_gemm/rows.hpp"
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

bool is_masked(const gemm::Shape& s) {
  return s.grouping == gemm::Grouping::masked;
}

std::vector<std::int64_t> measured_rows(const Problem& problem) {
  const bool skewed = problem.attribute("routing", "balanced") == "skewed";
  return rows_of_groups(shape_of(problem), skewed ? Routing::skewed : Routing::balanced);
}

/// The groups' matrices lie one after the other.
std::vector<TensorSpec> tensors(const Problem& problem) {
  const gemm::Shape s = shape_of(problem);
  const std::int64_t rows = is_masked(s) ? s.groups * s.m : s.m;
  return {{"A", Role::input, s.in, rows, s.k},
          {"B", Role::input, s.in, s.groups * s.b_lines(), s.b_stride()},
          {is_masked(s) ? "rows" : "ends", Role::input, DType::i32, 1, s.groups},
          {"C", Role::output, s.out, rows, s.n}};
}

/// Of the rows in plain inputs, and of groups that have some.
Work work(const Problem& problem) {
  const gemm::Shape s = shape_of(problem);
  std::int64_t rows = 0, groups = 0;
  for (const std::int64_t count : measured_rows(problem)) {
    rows += count;
    groups += count > 0 ? 1 : 0;
  }
  auto operands = tensors(problem);
  operands[0].rows = operands[3].rows = rows;
  operands[1].rows = operands[1].rows / s.groups * groups;
  Work least;
  least.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(s.products()) *
                static_cast<double>(s.k);
  least.bytes = operand_bytes(operands);
  return least;
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  HostTensor tensor = random_tensor(spec, seed);
  if (spec.name != "ends" && spec.name != "rows") return tensor;
  std::int64_t end = 0;
  std::size_t group = 0;
  for (const std::int64_t rows : measured_rows(problem)) {
    end += rows;
    store_element(DType::i32, tensor.data.data(), group++,
                  static_cast<double>(spec.name == "ends" ? end : rows));
  }
  return tensor;
}

/// Kernels count rows, with those of an incomplete tile of each group, in 32 bits. They compute
/// gates where gates and ups are lines of B.
Result<void> check(const Problem& problem) {
  const gemm::Shape shape = shape_of(problem);
  if (shape.gated && !shape.b_along_k) {
    return bad_field("layout", "nn", "must be nt with swiglu and geglu");
  }
  if (is_masked(shape)) return check_count(problem, "groups", {"groups", "m"});
  constexpr std::int64_t most = 2147483647, highest_tile = 256;
  const std::int64_t groups = problem.dim("groups"), m = problem.dim("m");
  if (groups <= (most - m) / highest_tile) return {};
  return bad_field("groups", std::to_string(groups), "m + 256 groups must not exceed 2147483647");
}

/// The distribution of rows over groups is that of what is measured alone. Gates change little of
/// a product of as many columns.
Problem unfused(const Problem& problem) {
  Problem plain = problem;
  std::erase_if(plain.attributes,
                [](const auto& one) { return one.first == "routing" || one.first == "epilogue"; });
  plain.extent("n") = shape_of(problem).products();
  return plain;
}

/// The product, and the activation of all of its rows, which has those of no group, too.
std::vector<Problem> parts(const Problem& problem) {
  const gemm::Shape s = shape_of(problem);
  if (!s.gated || s.activation != 1) return {};  // there is no operation for geglu
  Problem product = problem;
  std::erase_if(product.attributes, [](const auto& one) { return one.first == "epilogue"; });
  product.extent("n") = s.products();
  const std::int64_t rows = is_masked(s) ? s.groups * s.m : s.m;
  Problem gate{"silu_mul", s.out, s.out, {{"layout", "packed"}}, {{"rows", rows}, {"cols", s.n}}};
  return {std::move(product), std::move(gate)};
}

/// Reduces the number of groups, with their rows, and then that of columns.
Problem stand_in(const Problem& problem, double fraction) {
  Problem smaller = problem;
  const std::int64_t all = problem.dim("groups");
  const auto groups = static_cast<std::int64_t>(std::ceil(static_cast<double>(all) * fraction));
  std::int64_t& m = smaller.extent("m");
  smaller.extent("groups") = groups;
  if (!is_masked(shape_of(problem))) m = std::max<std::int64_t>(1, m * groups / all);
  fraction *= static_cast<double>(all) / static_cast<double>(groups);
  return fraction < 1 ? shorter(std::move(smaller), "n", 256, fraction) : smaller;
}

std::vector<Attribute> attributes() {
  return {
      {.name = "form",
       .help = "where the rows of groups are. contiguous: one after the other, m in all groups, "
               "and ends has the row after each group's last; masked: each group has m rows, of "
               "which the first count, and rows has their numbers",
       .fallback = "contiguous",
       .allowed = {"contiguous", "masked"}},
      {.name = "layout",
       .help = "storage of each group's B: nt: n x k; nn: k x n",
       .fallback = "nt",
       .allowed = {"nt", "nn"}},
      {.name = "epilogue",
       .help = "swiglu: C = silu(gate) * up, geglu: C = gelu(gate) * up in its tanh form; each "
               "group's B has n lines of gates, then n of ups",
       .fallback = "none",
       .allowed = {"none", "swiglu", "geglu"}},
      {.name = "routing",
       .help = "how rows are distributed over groups when kernels are measured. balanced: 3/4 "
               "to 5/4 of the mean, which is m / groups, or m / 2 of masked groups; skewed: "
               "shares of 1, 1/2, 1/3 and so on",
       .fallback = "balanced",
       .allowed = {"balanced", "skewed"}}};
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
  t.out_of_range =
      "an end or a number of rows below 0 counts as 0, one above m as m; ends must not decrease";
  t.dimensions = {{.name = "groups", .help = "number of groups", .examples = {1, 2, 3, 5, 8, 33}},
                  {.name = "m",
                   .help = "rows of all contiguous groups, or of each masked group's matrices",
                   .at_run_time = RunTimeExtent{}},
                  {.name = "n", .help = "columns of C"},
                  {.name = "k", .help = "reduction dimension: length of the dot products"}};
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
  t.variants = {gemm::naive(), gemm::matrix(), gemm::tma(), gemm::tiled()};
  t.untuned = Operation::Untuned::best_predicted;
  t.naive = Config{"naive", {{"THREADS", 256}}};
  t.check = grouped_gemm::check;
  t.shape = [](const Problem& problem) { return ProblemShape(grouped_gemm::shape_of(problem)); };
  t.work = grouped_gemm::work;
  t.input = grouped_gemm::input;
  t.harden = grouped_gemm::harden;
  t.tensors = grouped_gemm::tensors;
  t.reference = grouped_gemm_reference;
  t.fully_checked = grouped_gemm_fully_checked;
  t.unfused = grouped_gemm::unfused;
  t.parts = grouped_gemm::parts;
  t.stand_in = grouped_gemm::stand_in;
  return t;
}

}  // namespace greta::kernels
