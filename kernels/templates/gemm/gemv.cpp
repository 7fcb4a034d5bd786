#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/planning/arrival.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/variant.hpp"

/// Matrix products with few rows, bound by reading B once.
namespace greta::kernels::gemm {
namespace {

/// Returns the number of columns of the product per workgroup, of which half are gates if there are
/// any.
auto width_of(const Shape& shape, const auto& c) {
  return c["COLS"] * c[shape.b_along_k ? "TN" : "VB"];
}

/// Returns the number of columns of C per workgroup.
auto out_width_of(const Shape& shape, const auto& c) {
  return width_of(shape, c) / (shape.gated ? 2 : 1);
}

/// Returns the size of shared memory. HIP: one sum for each wave that shares a column. gemv.comp:
/// each lane's sums and those of its PARTS groups of lanes. A norm adds a sum of squares.
Expression shared_bytes(const Shape& shape, const DeviceInfo& device) {
  const Expression lanes = p["THREADS"] / p["COLS"];
  const Expression line = width_of(shape, p) + (shape.norm ? 1 : 0);
  if (device.language == Language::hip) {
    const std::int64_t wave = device.min_subgroup_size;
    const bool neighbours = shape.b_along_k && !shape.panels;  // as in gemv.hip
    const Expression of_wave = neighbours ? min(lanes, wave) : wave / p["COLS"];
    return 4 * line * (lanes / of_wave);
  }
  const Expression parts =
      select(lanes >= 1024, 32, select(lanes >= 256, 16, select(lanes >= 64, 8, 4)));
  return 4 * line * (lanes + parts);
}

/// Returns the 32-bit registers of a load of `count` elements.
auto load_registers(const Shape& shape, const auto& count) {
  return max(1, count * static_cast<std::int64_t>(bits_of(shape.in)) / 32);
}

/// Returns the number of 32-bit registers that a thread uses at once: accumulators, and UNROLL
/// loads of B in flight.
Expression least_registers(const Shape& shape) {
  return shape.m * p[shape.b_along_k ? "TN" : "VB"] +
         p["UNROLL"] * p["TN"] * load_registers(shape, p["VB"]);
}

/// Returns an estimate of the 32-bit registers of a thread of gemv.hip: accumulators, loads of B in
/// flight, A (double-buffered if one load of A does not serve all loads of B; compilers load more
/// of it ahead of more than eight), addresses.
std::int64_t registers_of(const Shape& shape, const Config& c) {
  const std::int64_t sums = shape.b_along_k ? c["TN"] * (c["VB"] > 1 ? 2 : 1) : c["VB"];
  const std::int64_t loads = c["UNROLL"] / (shape.b_along_k ? 1 : c["VA"]);
  const std::int64_t ahead = c["UNROLL"] > 8 ? loads : std::min<std::int64_t>(loads, 2);
  const std::int64_t a = ahead * load_registers(shape, c["VA"]);
  const std::int64_t norm = shape.norm ? a + 2 * shape.m : 0;  // weights, sums of squares
  return norm + shape.m * (sums + a + 1) + c["UNROLL"] * c["TN"] * load_registers(shape, c["VB"]) +
         16;
}

/// Return what divides the distances of a thread's loads. Gates and ups begin at multiples of n.
std::int64_t a_unit_of(const Shape& shape) {
  if (shape.a_along_k) return shape.a_unit();
  return shape.b_along_k ? 0 : 1;  // along with B, elements are loaded one by one: any number
}
std::int64_t b_unit_of(const Shape& shape) {
  return shape.b_along_k ? shape.b_unit() : std::gcd(shape.b_unit(), shape.n);
}

/// Returns the constraints that depend on the problem's extents.
std::vector<Constraint> problem_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t groups = most_workgroups(device);
  return {
      {"few_rows", fmt::format("gemv needs m <= {}, m is {}", most_gemv_rows, shape.m),
       shape.m <= most_gemv_rows},
      alignment_constraint("a_alignment", "VA", a_unit_of(shape)),
      alignment_constraint("b_alignment", "VB", b_unit_of(shape)),
      {"columns_of_thread",
       shape.b_along_k ? fmt::format("TN must divide n, {}", shape.n)
                       : std::string("TN must be 1: a load of B has several columns"),
       (shape.b_along_k ? shape.n : 1) % p["TN"] == 0},
      {"slices", fmt::format("SPLIT x UNROLL must not exceed k, {}", shape.k),
       p["SPLIT"] == 1 || p["SPLIT"] * p["UNROLL"] <= shape.k},
      {"grid", fmt::format("n is more than {} workgroups wide", groups),
       shape.groups * ceil_div(shape.n, out_width_of(shape, p)) <= groups},
      workspace_constraint(shape, device),
      {"batch_slices", "K is not sliced in a batch: SPLIT must be 1",
       p["SPLIT"] == 1 || !shape.several()},
  };
}

/// Returns the constraints of gates and norms.
std::vector<Constraint> fused_constraints(const Shape& shape) {
  std::vector<Constraint> list;
  if (shape.gated) {
    list.push_back({"gate_and_up",
                    shape.b_along_k ? "COLS x TN must be even: half of the columns are gates"
                                    : "COLS must be even: half of the threads have gates",
                    p["COLS"] * p["TN"] >= 2});
  }
  if (shape.norm) {
    // The bound of the sum of squares (GemmErrorModel) counts on it.
    const std::int64_t most = most_square_rounds(shape.k);
    const Expression lanes = p["THREADS"] / p["COLS"] * p["SPLIT"];
    list.push_back(
        {"rounds", fmt::format("a thread adds more than {} sums of squares one by one", most),
         ceil_div(shape.k, lanes * p["UNROLL"] * (shape.b_along_k ? p["VB"] : Expression(1))) <=
             most});
  }
  return list;
}

/// Returns the constraints of the resources of workgroups and threads.
std::vector<Constraint> workgroup_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  return {
      {"workgroup_threads", fmt::format("the device allows {} threads", threads),
       p["THREADS"] <= threads},
      {"a_loads",
       shape.b_along_k ? "VA must be VB: A is read along with B" : "VA must not exceed UNROLL",
       shape.b_along_k ? p["VA"] == p["VB"] : p["VA"] <= p["UNROLL"]},
      // GLSL's compilers start loads later where registers are few.
      register_constraint(device, fmt::format("sums of {} rows and UNROLL loads", shape.m),
                          least_registers(shape),
                          device.language == Language::hip ? p["THREADS"] : Expression(1)),
      {"columns",
       fmt::format("COLS x {} columns need as many of THREADS to write them",
                   shape.b_along_k ? "TN" : "VB"),
       width_of(shape, p) <= p["THREADS"]},
      {"shared_memory", fmt::format("the threads' sums of a row must fit {} KiB", shared / 1024),
       shared_bytes(shape, device) <= shared},
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"gemv", {}, {}};
  const auto widths = vector_widths(shape.in);
  // THREADS   workgroup size
  // COLS      threads along n; the others are along K
  // VB, VA    elements of B and A per load
  // TN        columns of a thread
  // UNROLL    loads of B in flight per column
  // SPLIT     split-K: workgroups that share the same columns
  a.parameters = {
      {"THREADS", {64, 128, 256, 512, 1024}},
      {"COLS", {1, 2, 4, 8, 16, 32}},
      {"VB", widths},
      // If K is contiguous in both, A is read along with B; if it is in neither, element by
      // element.
      {"VA", shape.a_along_k || shape.b_along_k ? widths : std::vector<int>{1}},
      // If K is contiguous in B, one load of A serves TN columns.
      {"TN", shape.b_along_k ? std::vector<int>{1, 2, 4, 8} : std::vector<int>{1}},
      {"UNROLL", {1, 2, 4, 8, 16}},
      {"SPLIT", {1, 2, 4, 8, 16, 32}},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, problem_constraints(shape, device));
  append(a.constraints, workgroup_constraints(shape, device));
  append(a.constraints, fused_constraints(shape));
  if (vectorising_cpu(device)) {
    a.constraints.push_back(
        {"code_size", "m x VB x TN x UNROLL above 128 multiplications compiles slowly for a CPU",
         shape.m * p["VB"] * p["TN"] * p["UNROLL"] <= 128});
  }
  return a;
}

/// For few rows. If B is read along n, wide workgroups with many loads in flight are fastest. If B
/// is read along K, many small workgroups are, with HIP with four columns per thread unless compute
/// units would be idle. Neighbouring threads have neighbouring columns of a panel.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  if (shape.m > most_gemv_rows) return {};
  const bool gpu = !vectorising_cpu(device);
  const bool fours = shape.b_along_k && !shape.panels && device.language == Language::hip &&
                     shape.n % 4 == 0 &&
                     shape.groups * shape.products() / 4 >= busy_workgroups(device);
  const int tn = fours ? 4 : 1;
  int unroll = shape.panels ? 4 : !gpu || fours ? 2 : shape.b_along_k ? 1 : 8;
  const std::int64_t together = shape.b_along_k ? a_unit_of(shape) : 0;  // A is read along with B
  const int vb = widest_vector(shape.in, std::gcd(together, b_unit_of(shape)), 8);
  const int panels = shape.gated ? 2 : 1;  // of 16 columns: those of gates, and of their ups
  int cols = shape.panels ? panels * 16 : fours && shape.m < 4 ? 1 : gpu && shape.b_along_k ? 2 : 8;
  const auto groups = [&] {
    return shape.groups *
           ceil_div(shape.products(), std::int64_t{cols} * (shape.b_along_k ? tn : vb));
  };
  while (cols > 2 && !shape.panels && 3 * groups() < busy_workgroups(device)) cols /= 2;
  // Of a short k, threads without loads are no use, nor are loads of each beyond it, whose code
  // comes from memory, too (on an H200, results/2026-12-01-nvidia-h200-long-single-queries).
  int most = fours ? 128 : gpu && !shape.b_along_k ? 1024 : 256;
  const auto at_once = [&] { return std::int64_t{most} / cols * unroll; };
  const bool across = compiled_by_nvrtc(device) && !shape.b_along_k && !shape.panels;
  while (across && unroll > 2 && at_once() > 2 * shape.k) unroll /= 2;
  while (across && most > 256 && at_once() > 2 * shape.k) most /= 2;
  const int va = shape.b_along_k ? vb : widest_vector(shape.in, a_unit_of(shape), unroll);
  std::vector<Config> configs;
  for (const int threads : {most, 512, 256, 128, 64}) {
    configs.push_back({"gemv",
                       {{"THREADS", threads},
                        {"COLS", cols},
                        {"VB", vb},
                        {"VA", va},
                        {"TN", tn},
                        {"UNROLL", unroll},
                        // An additional slice costs as much as it hides, unless most of the device
                        // is idle.
                        {"SPLIT", gpu ? default_split(shape, device, 4 * groups()) : 1}}});
  }
  if (device.language == Language::hip) {
    std::stable_partition(configs.begin(), configs.end(), [&](const Config& c) {
      return registers_of(shape, c) * c["THREADS"] <= register_file(device);
    });
  }
  return configs;
}

/// Of few columns along a long k: a workgroup for each, with many loads in flight, on NVIDIA GPUs
/// (results/2026-12-01-nvidia-h200-long-single-queries).
std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device) {
  constexpr int threads = 512, most_loads = 4;
  const std::int64_t columns = shape.groups * shape.products();
  if (shape.m > most_gemv_rows || !shape.b_along_k || shape.panels || shape.gated) return {};
  if (!compiled_by_nvrtc(device) || columns > 2 * busy_workgroups(device)) return {};
  const int vec = widest_vector(shape.in, std::gcd(a_unit_of(shape), b_unit_of(shape)), 8);
  const std::int64_t loads = next_power(ceil_div(shape.k, std::int64_t{threads} * vec));
  if (loads < 2) return {};
  return {{"gemv",
           {{"THREADS", threads},
            {"COLS", 1},
            {"VB", vec},
            {"VA", vec},
            {"TN", 1},
            {"UNROLL", static_cast<int>(std::min<std::int64_t>(loads, most_loads))},
            {"SPLIT", 1}}}};
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("ROWS", std::to_string(shape.m));
  add_packs(defines, shape, device, config);
  const int split = config["SPLIT"];
  Tiles tiles;
  tiles.m = static_cast<std::uint64_t>(shape.groups);
  tiles.n = static_cast<std::uint64_t>(ceil_div(shape.n, out_width_of(shape, config)));
  tiles.slice = slice_length(shape, split, 16);  // aligned for every vector width

  LaunchPlan plan;
  plan.sources.push_back(kernel_source(shape, device, "gemv", defines, config["THREADS"]));
  if (split > 1) {  // the last slice to finish adds the partial sums of all
    plan.zeroed_bytes = counter_bytes(tiles.n);
    plan.workspace_bytes = plan.zeroed_bytes + partial_bytes(shape, split);
    if (shape.norm) {  // the sums of squares, one for each workgroup
      plan.workspace_bytes += 4 * tiles.n * static_cast<std::uint64_t>(split * shape.m);
    }
  }
  plan.launches.push_back({0, grid(device, plan.sources[0], tiles.m * tiles.n, split),
                           arguments(shape, tiles, split > 1, plan.zeroed_bytes)});
  plan.launches.back().early_operands = {1};
  return plan;
}

/// A slice of K is processed by the threads along K, with UNROLL loads each.
std::vector<Division> divisions(const Shape& shape, const Config& c) {
  const std::int64_t lanes = c["THREADS"] / c["COLS"], slice = slice_length(shape, c["SPLIT"], 16);
  const std::int64_t load = shape.b_along_k ? c["VB"] : 1;
  return {{"n", shape.n, out_width_of(shape, c)},
          {"k", c["SPLIT"] == 1 ? shape.k : slice, lanes * c["UNROLL"] * load},
          {"slices", ceil_div(shape.k, 16), c["SPLIT"], "SPLIT"}};
}

/// Returns the bytes that caches serve for a workgroup's columns of a row of B: whole sectors, of
/// which rows that begin anywhere share some with their neighbours.
double bytes_of_row(const Shape& shape, double width) {
  constexpr double sector = 32;
  const double in = bytes_of(shape.in, 1), ranges = shape.gated ? 2 : 1;
  const double bytes = width * in / ranges;
  if (shape.b_along_k) return width * in;
  const auto whole = [&](std::int64_t elements) {
    return std::fmod(static_cast<double>(elements) * in, sector) == 0;
  };
  const bool aligned = whole(shape.b_stride()) && whole(shape.b_offset);
  return ranges * (aligned ? std::ceil(bytes / sector) * sector : bytes - in + sector);
}

KernelWork work(const Shape& shape, const DeviceInfo&, const Config& config) {
  const double in = bytes_of(shape.in, 1), m = static_cast<double>(shape.m);
  const double threads = config["THREADS"], split = config["SPLIT"];
  const double width = static_cast<double>(width_of(shape, config));
  const double out_width = static_cast<double>(out_width_of(shape, config));
  const auto slice = static_cast<double>(slice_length(shape, config["SPLIT"], 16));
  const double loads = config["UNROLL"] * config["TN"];  // of a thread, in flight
  const double lanes = threads / config["COLS"];
  LaunchWork work;
  const double products = static_cast<double>(shape.products());
  const double batch = static_cast<double>(shape.groups);
  work.workgroups = batch * std::ceil(products / width) * split;
  work.threads = threads;
  work.shared_bytes = 4 * width * lanes / std::min(lanes, 32.0);
  work.registers = static_cast<double>(registers_of(shape, config));
  work.vector_flops = 2 * m * width * slice;
  // Each thread squares and weights what it reads of A.
  const double rows = m + (shape.norm ? 1 : 0);
  if (shape.norm) work.vector_flops += 3 * m * slice * config["COLS"];
  work.read_bytes = (bytes_of_row(shape, width) + rows * in) * slice;
  work.written_bytes = m * (split > 1 ? 4 * width : bytes_of(shape.out, 1) * out_width);
  work.loads = width * slice / config["VB"] + rows * threads * slice / lanes / config["VA"];
  work.ahead_bytes = threads * loads * config["VB"] * in;
  work.steps = std::ceil(width * slice * in / work.ahead_bytes);
  work.barriers = 2 + (split > 1 ? barriers_of_arrival(4 * m * width * split) : 0);
  // Many loads along K make kernels large, which a cold launch fetches first, and so do products of
  // many rows with many columns (results/2026-11-27-nvidia-h200-unseen-shapes,
  // results/2026-12-01-nvidia-h200-unseen-catalog).
  work.barriers += shape.b_along_k ? std::pow(config["UNROLL"], 3) / 50
                                   : m * config["VB"] * config["UNROLL"] / 10;
  work.unique_bytes = batch * (products + rows) * static_cast<double>(shape.k) * in;
  return {work};
}

}  // namespace

Variant gemv() {
  Variant variant = make_variant<Shape>(
      "gemv", "few rows, bound by reading B once: a workgroup computes some columns of all rows",
      space, plan, defaults, divisions);
  variant.migrations = {added("TN", 1)};
  set_candidates<Shape>(variant, candidates);
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::gemm
