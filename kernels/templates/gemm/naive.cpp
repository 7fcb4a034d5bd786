#include <fmt/format.h>

#include <algorithm>

#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/variant.hpp"

/// GEMM with one thread per element of C.
namespace greta::kernels::gemm {
namespace {

/// Returns the number of elements for which there are threads.
std::int64_t elements_of(const Shape& shape) {
  return launched_lines(shape, std::int64_t{1}) * shape.n;
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t elements = elements_of(shape);
  const bool runs = !vectorising_cpu(device) || shape.k < most_iterations;
  return {"naive",
          {{"THREADS", {64, 128, 256, 512}}},
          {storage_constraint(shape.in, shape.out, device),
           {"loop_limit",
            fmt::format("the CPU driver runs 65535 rounds of a loop: too few for k = {}", shape.k),
            runs},
           {"workgroup_threads", fmt::format("the device allows {} threads", threads),
            p["THREADS"] <= threads},
           {"grid", fmt::format("{} elements are more than {} workgroups", elements, groups),
            elements <= groups * p["THREADS"]}}};
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const auto elements = static_cast<std::uint64_t>(elements_of(shape));
  const auto threads = static_cast<std::uint64_t>(config["THREADS"]);
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  LaunchPlan plan;
  plan.sources.push_back(kernel_source(shape, device, "naive", defines, config["THREADS"]));
  Tiles tiles;
  tiles.m = static_cast<std::uint64_t>(launched_lines(shape, std::int64_t{1}));
  plan.launches.push_back({0, grid(device, plan.sources[0], ceil_div(elements, threads)),
                           arguments(shape, tiles, false)});
  return plan;
}

std::vector<Config> defaults(const Shape& shape, const DeviceInfo&) {
  if (shape.n > hardly_any && shape.k > hardly_any) return {};
  return {{"naive", {{"THREADS", 256}}}};
}

KernelWork work(const Shape& shape, const DeviceInfo&, const Config& config) {
  const double k = static_cast<double>(shape.k), in = bytes_of(shape.in, 1);
  const auto elements = filled_lines(shape, 1) * shape.n;
  LaunchWork work;
  work.threads = config["THREADS"];
  work.workgroups = static_cast<double>(ceil_div(elements, config["THREADS"]));
  work.registers = 32;
  const double columns = shape.gated ? 2 : 1, rows = shape.norm ? 2 : 1;  // A and its weight
  work.vector_flops = (2 * columns + (shape.norm ? 3 : 0)) * k * work.threads;
  work.read_bytes = (columns + rows) * k * work.threads * in;
  work.written_bytes = work.threads * bytes_of(shape.out, 1);
  work.loads = (columns + rows) * k * work.threads;
  work.steps = std::max(1.0, k / 4);
  work.ahead_bytes = 8 * work.threads * in;
  const std::int64_t lines = filled_lines(shape, 1) + shape.groups * shape.products();
  work.unique_bytes =
      static_cast<double>(lines) * k * in + static_cast<double>(elements) * bytes_of(shape.out, 1);
  return {work};
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  return {{"elements", elements_of(shape), config["THREADS"], "THREADS"}};
}

}  // namespace

Variant naive() {
  Variant variant = make_variant<Shape>(
      "naive", "the baseline, and for C or K too small for tiles: a thread computes one element",
      space, plan, defaults, divisions);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::gemm
