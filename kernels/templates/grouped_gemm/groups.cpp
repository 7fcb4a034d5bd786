#include "kernels/templates/grouped_gemm/groups.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/grouped_gemm/rows.hpp"
#include "kernels/templates/grouped_gemm/shape.hpp"

namespace greta::kernels::grouped_gemm {

bool is_masked(const gemm::RowGroups& rows) {
  return rows.grouping == gemm::Grouping::masked;
}

std::vector<std::int64_t> measured_rows(const Problem& problem) {
  const bool skewed = problem.attribute("routing", "balanced") == "skewed";
  return rows_of_groups(shape_of(problem), skewed ? Routing::skewed : Routing::balanced);
}

TensorSpec rows_operand(const gemm::RowGroups& rows) {
  return {is_masked(rows) ? "rows" : "ends", Role::input, DType::i32, 1, rows.groups};
}

bool is_rows_operand(std::string_view name) {
  return name == "ends" || name == "rows";
}

HostTensor rows_input(const Problem& problem, const TensorSpec& spec) {
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  std::int64_t end = 0;
  std::size_t group = 0;
  for (const std::int64_t rows : measured_rows(problem)) {
    end += rows;
    store_element(DType::i32, tensor.data.data(), group++,
                  static_cast<double>(spec.name == "ends" ? end : rows));
  }
  return tensor;
}

std::vector<Dimension> dimensions() {
  return {{.name = "groups", .help = "number of groups", .examples = {1, 2, 3, 5, 8, 33}},
          {.name = "m",
           .help = "rows of all contiguous groups, or of each masked group's matrices",
           .at_run_time = RunTimeExtent{.steps = 8}},
          {.name = "n", .help = "columns of C"},
          {.name = "k", .help = "reduction dimension: length of the dot products"}};
}

Attribute form_attribute() {
  return {.name = "form",
          .help =
              "where the rows of groups are. contiguous: one after the other, m in all groups, "
              "and ends has the row after each group's last; masked: each group has m rows, of "
              "which the first count, and rows has their numbers",
          .fallback = "contiguous",
          .allowed = {"contiguous", "masked"}};
}

Attribute epilogue_attribute() {
  return {.name = "epilogue",
          .help =
              "swiglu: C = silu(gate) * up, geglu: C = gelu(gate) * up in its tanh form; each "
              "group's B has n lines of gates, then n of ups",
          .fallback = "none",
          .allowed = {"none", "swiglu", "geglu"}};
}

Attribute routing_attribute() {
  return {.name = "routing",
          .help =
              "how rows are distributed over groups when kernels are measured. balanced: 3/4 "
              "to 5/4 of the mean, which is m / groups, or m / 2 of masked groups; skewed: "
              "shares of 1, 1/2, 1/3 and so on",
          .fallback = "balanced",
          .allowed = {"balanced", "skewed"}};
}

Result<void> check_rows(const Problem& problem) {
  if (is_masked(shape_of(problem))) return check_count(problem, "groups", {"groups", "m"});
  constexpr std::int64_t most = 2147483647, highest_tile = 256;
  const std::int64_t groups = problem.dim("groups"), m = problem.dim("m");
  if (groups <= (most - m) / highest_tile) return {};
  return bad_field("groups", std::to_string(groups), "m + 256 groups must not exceed 2147483647");
}

Result<void> check_lines(const Problem& problem, std::int64_t lines) {
  constexpr std::int64_t most = 2147483647;
  const std::int64_t groups = problem.dim("groups");
  if (lines <= most / groups) return {};
  return bad_field("groups", std::to_string(groups),
                   "groups x rows of B of a group must not exceed 2147483647");
}

Problem gate_of_rows(DType type, std::int64_t rows, std::int64_t columns) {
  return {"silu_mul", type, type, {{"layout", "packed"}}, {{"rows", rows}, {"cols", columns}}};
}

Work work(const Problem& problem, std::vector<TensorSpec> operands) {
  const gemm::Shape s = shape_of(problem);
  std::int64_t rows = 0, groups = 0;
  for (const std::int64_t count : measured_rows(problem)) {
    rows += count;
    groups += count > 0 ? 1 : 0;
  }
  for (TensorSpec& operand : operands) {
    if (is_rows_operand(operand.name)) continue;
    const bool of_rows = operand.name == "scales_a" && operand.rows == s.all_rows();
    const bool by_rows = operand.name == "A" || operand.name == "C" || of_rows;
    operand.rows = by_rows ? rows : operand.rows / s.groups * groups;
  }
  Work least;
  least.flops = 2.0 * static_cast<double>(rows) * static_cast<double>(s.products()) *
                static_cast<double>(s.k);
  least.bytes = operand_bytes(operands);
  return least;
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

void set_groups(Operation& operation, std::vector<TensorSpec> (*tensors)(const Problem&)) {
  operation.out_of_range =
      "an end or a number of rows below 0 counts as 0, one above m as m; ends must not decrease";
  operation.work = [tensors](const Problem& problem) { return work(problem, tensors(problem)); };
  operation.tensors = tensors;
  operation.fully_checked = grouped_gemm_fully_checked;
  operation.unfused = unfused;
  operation.stand_in = stand_in;
}

}  // namespace greta::kernels::grouped_gemm
