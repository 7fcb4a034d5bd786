#include "kernels/templates/gemm/alignment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/workspace.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"

namespace greta::kernels::gemm {
namespace {

/// Returns the number of elements in 16 bytes.
std::int64_t chunk_of(const Shape& shape) {
  return 128 / bits_of(shape.in);
}

/// Returns the size of a copy, rounded up to the alignment of the next one.
std::int64_t copy_bytes(const Shape& shape, std::int64_t lines, std::int64_t length) {
  return workspace_part(lines * ceil_div(length, chunk_of(shape)) * 16);
}

std::int64_t a_bytes(const Shape& shape) {
  return has_odd_a(shape) ? copy_bytes(shape, shape.a_lines(), shape.a_length()) : 0;
}

std::int64_t b_bytes(const Shape& shape) {
  return has_odd_b(shape) ? copy_bytes(shape, shape.b_lines(), shape.b_length()) : 0;
}

Constraint divides(const char* name, const char* parameter, std::int64_t stride) {
  return {name,
          fmt::format("{} must divide {}, the elements of a row of {} as it is stored, where ALIGN "
                      "is 0",
                      parameter, stride, parameter[1]),
          p["ALIGN"] != 0 || stride % p[parameter] == 0};
}

std::int64_t aligned_bytes(const Shape& shape) {
  return a_bytes(shape) + b_bytes(shape);
}

}  // namespace

bool has_odd_a(const Shape& shape) {
  return shape.a_unit() % chunk_of(shape) != 0;
}

bool has_odd_b(const Shape& shape) {
  return shape.b_unit() % chunk_of(shape) != 0;
}

bool has_odd_lines(const Shape& shape) {
  return has_odd_a(shape) || has_odd_b(shape);
}

std::vector<Constraint> alignment_constraints(const Shape& shape) {
  return {
      {"align", "there are no odd lines for ALIGN", p["ALIGN"] == 0 || has_odd_lines(shape)},
      divides("a_alignment", "VA", shape.a_unit()),
      divides("b_alignment", "VB", shape.b_unit()),
  };
}

Constraint wide_enough(const char* name, const char* parameter, DType type, std::int64_t stride,
                       int copy) {
  const int aligned = vector_widths(type).back(), widest = widest_vector(type, stride, aligned);
  return {name, fmt::format("{} could be {}, or {} with ALIGN", parameter, widest, aligned),
          2 * p[parameter] >= select(p["ALIGN"] != 0, aligned, widest) || p[parameter] == copy};
}

std::int64_t most_slices(const DeviceInfo& device) {
  return 4 * busy_workgroups(device);
}

std::vector<Constraint> slice_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t most = most_workspace(device);
  std::vector<Constraint> list = group_constraints(shape);
  const std::vector<Constraint> slices{
      {"slices", fmt::format("SPLIT x BK must not exceed k, {}", shape.k),
       p["SPLIT"] == 1 || p["SPLIT"] * p["BK"] <= shape.k},
      {"enough_workgroups",
       fmt::format("BM x BN in SPLIT slices make more than {} workgroups", most_slices(device)),
       p["SPLIT"] == 1 ||
           ceil_div(shape.m, p["BM"]) * ceil_div(shape.products(), p["BN"]) * p["SPLIT"] <=
               most_slices(device)},
      {"workspace",
       fmt::format("SPLIT partial sums of {} x {} elements, and with ALIGN the operands, need more "
                   "than {} MiB",
                   shape.m, shape.products(), most >> 20),
       select(p["SPLIT"] == 1, 0, shape.m * shape.products() * 4 * p["SPLIT"]) +
               select(p["ALIGN"] != 0, aligned_bytes(shape), 0) <=
           most},
  };
  append(list, slices);
  return list;
}

void add_alignment(Defines& defines, const Shape& shape, const Config& config) {
  const bool align = config["ALIGN"] != 0;
  defines.emplace_back("ALIGN_A", align && has_odd_a(shape) ? "1" : "0");
  defines.emplace_back("ALIGN_B", align && has_odd_b(shape) ? "1" : "0");
}

void add_alignment(LaunchPlan& plan, const Shape& shape, const DeviceInfo& device,
                   const Config& config) {
  if (config["ALIGN"] == 0) return;
  CopiedOperands copies{.kernel = "align",
                        .defines = problem_defines(shape),
                        .a_bytes = a_bytes(shape),
                        .b_bytes = b_bytes(shape)};
  add_alignment(copies.defines, shape, config);
  copies.workgroups = ceil_div(std::max(copies.a_bytes, copies.b_bytes) / 16, 256);
  add_copies(plan, shape, device, copies);
}

}  // namespace greta::kernels::gemm
