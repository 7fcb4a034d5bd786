#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/variant.hpp"

/// Products with quantised weights whose threads share columns.
namespace greta::kernels::quantized_gemm {
namespace {

constexpr std::int64_t chunk = 32;  ///< weights that a thread loads at once

std::int64_t width_of(const Config& config) {
  return std::int64_t{config["COLS"]} * config["TN"];
}

/// Returns the 32-bit registers of a loaded chunk: integers as they lie in memory, scales, a zero
/// point.
std::int64_t chunk_registers(const Shape& shape) {
  return chunk * traits(shape.format).bits / 32 + (shape.format == WeightFormat::q6_k ? 3 : 2);
}

/// Returns the matrices of which a column of C has a row each: B, or gates and ups.
int runs_of(const Shape& shape) {
  return shape.gated() ? 2 : 1;
}

/// Returns the least TN with which a thread has whole words of neighbouring rows.
int least_across(const Shape& shape) {
  return runs_of(shape) * (shape.packed().along_n() ? 8 : 1);
}

/// Returns the sums of a workgroup with ACROSS=1, over all of its threads along K.
std::int64_t sums_of_tile(const Shape& shape, const Config& config) {
  return std::int64_t{config["ROWS"]} * (config["TN"] + (shape.norm ? 1 : 0)) * config["COLS"];
}

/// Returns the bytes of shared memory: one sum for each wave, or with GLSL each thread; with
/// ACROSS=1 one for each column and subgroup, or if these are not known each thread.
std::int64_t shared_bytes(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const bool hip = device.language == Language::hip;
  const std::int64_t threads = config["THREADS"], wave = device.min_subgroup_size;
  if (config["ACROSS"] == 0) {
    const std::int64_t sums = std::int64_t{config["ROWS"]} * (config["TN"] + (shape.norm ? 1 : 0));
    return hip ? 4 * sums * (threads / wave + 1) : 8 * threads;
  }
  const std::int64_t together = std::max<std::int64_t>(
      hip ? wave : whole_subgroups(device, config["THREADS"]), config["COLS"]);
  constexpr std::int64_t of_arrival = 16;
  return 4 * sums_of_tile(shape, config) * ceil_div(threads, together) + of_arrival;
}

/// Returns the constraints of words of AWQ and GPTQ, and of slices of K.
std::vector<Constraint> word_constraints(const Shape& shape, const DeviceInfo& device) {
  std::vector<Constraint> list{
      {"slices", fmt::format("SPLIT must not exceed the {} chunks of 32 of k", shape.k / chunk),
       p["SPLIT"] <= shape.k / chunk}};
  if (!shape.packing) return list;
  const int runs = runs_of(shape), least = least_across(shape);
  const std::int64_t most = most_workspace(device);
  append(list,
         {{"whole_rows", "SPLIT above 1 needs ACROSS=1", p["SPLIT"] == 1 || p["ACROSS"] == 1},
          {"wide", "TN above 8 needs ACROSS=1", p["TN"] <= 8 || p["ACROSS"] == 1},
          {"words", fmt::format("with ACROSS=1, TN must be at least {}", least),
           p["ACROSS"] == 0 || p["TN"] >= least},
          {"neighbours",
           fmt::format("with ACROSS=1, {} must divide n, {}", runs > 1 ? "TN / 2" : "TN", shape.n),
           p["ACROSS"] == 0 || shape.n % max(p["TN"] / runs, 1) == 0},
          {"workspace",
           fmt::format("sums of slices need more than {} MiB", most >> 20),
           {{"COLS", "TN", "ROWS", "SPLIT"}, [=](const Config& c) {
              const std::int64_t tiles = ceil_div(shape.products(), width_of(c)) *
                                         ceil_div(shape.m, std::int64_t{c["ROWS"]});
              return c["SPLIT"] == 1 || tiles <= most / 4 / c["SPLIT"] / sums_of_tile(shape, c);
            }}}});
  if (shape.packed().along_n()) {
    list.push_back({"nibbles",
                    "with packing awq and ACROSS=0, TN must be at most 2: each column takes a "
                    "nibble of 32 words at a time",
                    p["TN"] <= 2 || p["ACROSS"] == 1});
  }
  return list;
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t shared = device.shared_memory_bytes;
  // THREADS   workgroup size
  // COLS      threads along n; the others are along K
  // TN        columns of a thread, which one load of A serves
  // ROWS      rows of C of a workgroup, which one load of B serves
  // UNROLL    chunks of 32 weights in flight for each column
  // ACROSS    1: neighbouring threads are along n, whole words of packed weights each; 0: along K
  // SPLIT     workgroups that share K
  const bool words = shape.packing.has_value();
  Alternative a{"gemv",
                {{"THREADS", {32, 64, 128, 256, 512}},
                 {"COLS", {1, 2, 4, 8, 16, 32}},
                 {"TN", words ? std::vector{1, 2, 4, 8, 16} : std::vector{1, 2, 4, 8}},
                 {"ROWS", {1, 2, 4, 8}},
                 {"UNROLL", {1, 2, 4}},
                 {"ACROSS", words ? std::vector{0, 1} : std::vector{0}},
                 {"SPLIT", words ? std::vector{1, 2, 4, 8, 16} : std::vector{1}}},
                {storage_constraint(shape.halves(), shape.out, device)}};
  append(
      a.constraints,
      {{"workgroup_threads", fmt::format("the device allows {} threads", threads),
        p["THREADS"] <= threads},
       {"columns", "COLS must not exceed THREADS", p["COLS"] <= p["THREADS"]},
       {"gates", "TN must be even with swiglu", !shape.gated() || p["TN"] >= 2},
       {"rounds", "a norm's sum of squares needs two threads along K, 2 COLS <= THREADS",
        !shape.norm || 2 * p["COLS"] <= p["THREADS"]},
       {"rows", fmt::format("ROWS must not be twice m, {}, or more", shape.m),
        p["ROWS"] < 2 * shape.m},
       {"idle_threads",
        fmt::format("THREADS / COLS chunks of 32 must not be twice k, {}, or more", shape.k),
        p["THREADS"] / p["COLS"] * chunk < 2 * shape.k || p["THREADS"] <= 32 * p["COLS"]},
       {"grid", fmt::format("C has more than {} workgroups", groups),
        ceil_div(shape.products(), p["COLS"] * p["TN"]) * ceil_div(shape.m, p["ROWS"]) <= groups},
       {"shared_memory",
        fmt::format("sums of waves must fit {} KiB", shared / 1024),
        {{"THREADS", "COLS", "TN", "ROWS", "ACROSS"},
         [=](const Config& c) { return shared_bytes(shape, device, c) <= shared; }}},
       register_constraint(
           device, "sums, and chunks in flight",
           2 * p["ROWS"] * p["TN"] + 8 + p["UNROLL"] * p["TN"] * chunk_registers(shape),
           device.language == Language::hip ? p["THREADS"] : Expression(1))});
  append(a.constraints, word_constraints(shape, device));
  if (vectorising_cpu(device)) {
    const auto size = p["ROWS"] * p["TN"] * p["UNROLL"];
    a.constraints.push_back({"code_size",
                             "ROWS x TN x UNROLL above 4, or with ACROSS=1 16, compiles slowly for "
                             "a CPU",
                             size <= 4 || (p["ACROSS"] == 1 && size <= 16)});
  }
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return plan_of_tiles(shape, device, config,
                       {.name = "gemv",
                        .threads = config["THREADS"],
                        .rows = config["ROWS"],
                        .columns = width_of(config),
                        .subgroup = whole_subgroups(device, config["THREADS"]),
                        .split = config["SPLIT"],
                        .slice_sums = config["SPLIT"] > 1 ? sums_of_tile(shape, config) : 0});
}

/// Of packed weights: threads along n have lines of 32 bytes of AWQ's words, or 128 of GPTQ's, or
/// half of that where a workgroup for each compute unit needs it. The others are along K. Slices of
/// K wait for each other, so that workgroups have them only where most compute units were idle.
std::vector<Config> across_defaults(const Shape& shape, const DeviceInfo& device, int rows) {
  constexpr int most_split = 16;
  std::vector<Config> configs;
  const int least = least_across(shape), runs = runs_of(shape);
  const bool cpu = vectorising_cpu(device);
  // Compilers spill more sums than these beside words of 8 bits, of gates and ups, a norm, or the
  // sums of a chunk.
  const bool more = traits(shape.format).bits == 8 || least > 8 || (shape.norm && least > 4) ||
                    shape.in == DType::bf16;
  const bool most = (shape.norm && device.vendor == "AMD") ||
                    (shape.in == DType::bf16 && least > 8 && shape.zeros);
  const int spared = most ? 16 : 32;
  const int most_sums = more && thread_registers(device) <= 256 ? std::max(spared, least) : 64;
  for (const int tn : {cpu ? least : std::max(least, 4 * runs), least}) {
    if (shape.n % (tn / runs) != 0) continue;
    const auto tiles = [&](int cols) {
      return ceil_div(shape.products(), std::int64_t{cols} * tn) *
             ceil_div(shape.m, std::int64_t{rows});
    };
    const int cols = !cpu && tiles(8) < busy_workgroups(device) / 2 ? 4 : 8;
    for (const int threads : {512, 256, 128, 64}) {
      // Each thread has a chunk at least, and registers for its sums: 128 for up to 16 of them.
      const std::int64_t rounds = shape.k / chunk / (threads / cols);
      const int sums = std::min(rows, most_sums / tn) * tn;
      if (threads > 256 && (cpu || rounds < 1 || sums > 16)) continue;
      int split = 1;
      while (!cpu && split < most_split && 2 * tiles(cols) * split <= busy_workgroups(device) &&
             2 * split <= rounds) {
        split *= 2;
      }
      configs.push_back({"gemv",
                         {{"THREADS", threads},
                          {"COLS", cols},
                          {"TN", tn},
                          {"ROWS", sums / tn},
                          {"UNROLL", 1},
                          {"ACROSS", 1},
                          {"SPLIT", split}}});
    }
  }
  return configs;
}

/// Returns the columns of a thread at least: a gate and its up.
int least_columns(const Shape& shape) {
  return shape.gated() ? 2 : 1;
}

/// Returns the rows of a workgroup by default, which share what is loaded of B.
int default_rows(const Shape& shape, const DeviceInfo& device) {
  // Of eight rows whose squares are added, too, AMD's compiler spills, and ptxas those of f32.
  const bool spills =
      device.vendor == "AMD" || (device.language == Language::hip && shape.in == DType::f32);
  const int rows_of_gpu = shape.norm && spills ? 4 : 8;
  const int most_rows = vectorising_cpu(device) ? 4 / least_columns(shape) : rows_of_gpu;
  int rows = 1;
  while (rows < most_rows && rows < shape.m) rows *= 2;
  return rows;
}

/// One wave for some columns at a time.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  const bool gpu = !vectorising_cpu(device);
  const int least = least_columns(shape), rows = default_rows(shape, device);
  // GLSL's compilers unroll more than registers have room for.
  const bool room = device.language == Language::hip || rows <= 2;
  const bool wide = gpu && room && shape.products() / 4 >= busy_workgroups(device);
  // Clang converts eight rows of bf16 ahead of products: with four columns, RDNA's 256 registers
  // are too few.
  const bool converts = device.vendor == "AMD" && thread_registers(device) <= 256 &&
                        shape.in == DType::bf16 && rows == 8;
  const int most = shape.packing == WeightPacking::awq || converts ? 2 : 4;
  std::vector<Config> configs;
  if (shape.packing) configs = across_defaults(shape, device, rows);
  for (const int tn : {wide ? most : least, least}) {
    for (const int threads : {128, 64, 32}) {
      const int cols = threads / 32;
      configs.push_back({"gemv",
                         {{"THREADS", threads},
                          {"COLS", cols},
                          {"TN", tn},
                          {"ROWS", rows},
                          {"UNROLL", 1},
                          {"ACROSS", 0},
                          {"SPLIT", 1}}});
    }
  }
  return configs;
}

/// On NVIDIA GPUs, whose times the static prior was fitted to.
std::vector<Config> candidates(const Shape& shape, const DeviceInfo& device) {
  if (device.vendor != "NVIDIA" || device.language != Language::hip || shape.packing) return {};
  return combinations("gemv", {{"THREADS", {128, 64, 32}},
                               {"COLS", {1, 2, 4}},
                               {"TN", {2, 4}},
                               {"ROWS", {default_rows(shape, device)}},
                               {"UNROLL", {1, 2}},
                               {"ACROSS", {0}},
                               {"SPLIT", {1}}});
}

std::vector<Division> divisions(const Shape& shape, const Config& config) {
  const std::int64_t lanes = config["THREADS"] / config["COLS"];
  const std::int64_t slice = ceil_div(shape.k / chunk, std::int64_t{config["SPLIT"]}) * chunk;
  return {{"m", shape.m, config["ROWS"], "ROWS", 4},
          {"n", shape.products(), width_of(config)},
          {"k", slice, lanes * config["UNROLL"] * chunk},
          {"slices", shape.k / chunk, config["SPLIT"], "", never}};  // 2 and 4 have rarely a rest
}

/// Returns the KiB of a kernel's loop, as they fit times of an H200.
double code_kib(const Config& c) {
  return 3 + c["TN"] * c["UNROLL"] * (1.5 + 0.5 * c["ROWS"]);
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double rows = config["ROWS"], columns = static_cast<double>(width_of(config));
  const double threads = config["THREADS"], split = config["SPLIT"];
  const double k = static_cast<double>(shape.k) / split;
  const double rows_of_a = rows + (shape.norm ? 1 : 0);  // and the norm's weight
  const double weight =
      static_cast<double>(row_bytes(shape.format, shape.k)) / static_cast<double>(shape.k);
  const double groups = std::ceil(static_cast<double>(shape.products()) / columns) * split;
  // Neighbouring threads along n load the same elements of A at once.
  const double copies_of_a = config["ACROSS"] != 0 ? 1 : config["COLS"];
  LaunchWork work;
  work.workgroups = groups * static_cast<double>(ceil_div(shape.m, std::int64_t{config["ROWS"]}));
  work.threads = threads;
  work.registers =
      static_cast<double>(2 * config["ROWS"] * config["TN"] + 8 * config["TN"] + 24 +
                          std::int64_t{config["UNROLL"]} * config["TN"] * chunk_registers(shape));
  // A weight costs its integer, its conversion and a difference, and a product for each row.
  work.vector_flops = columns * k * (2 * rows + 5);
  if (shape.norm) work.vector_flops += (3 * rows + 1) * k * config["COLS"];
  work.vector_flops *= time_of_code(device, code_kib(config));
  const double a_bytes = bytes_of(shape.in, 1);
  work.read_bytes =
      columns * k * (weight + scale_bytes(shape)) + rows_of_a * k * copies_of_a * a_bytes;
  work.written_bytes = rows * columns * (split > 1 ? 4 : bytes_of(shape.out, 1));
  const bool halves = in_blocks(shape.format) && shape.format != WeightFormat::q4_k;
  const double load = config["ACROSS"] != 0 ? 4 * std::min(4, config["TN"] / least_across(shape))
                                            : bytes_of_load(shape, halves ? 2 : 16);
  work.loads = columns * k * weight / load + rows_of_a * k * config["COLS"] * a_bytes / 16;
  work.ahead_bytes = threads * config["UNROLL"] * config["TN"] * chunk * weight;
  work.steps = std::max(1.0, columns * k * weight / work.ahead_bytes);
  const bool one = device.language == Language::hip || config["ACROSS"] != 0;
  work.barriers = (one ? 1 : rows * config["TN"]) +
                  (split > 1 ? barriers_of_arrival(4 * rows * columns * split) : 0);
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace

Variant gemv() {
  Variant variant = make_variant<Shape>(
      "gemv", "bound by reading B: a workgroup computes some columns of ROWS rows", space, plan,
      defaults, divisions);
  variant.migrations = {added("ACROSS", 0), added("SPLIT", 1)};
  set_work<Shape>(variant, work);
  set_candidates<Shape>(variant, candidates);
  return variant;
}

}  // namespace greta::kernels::quantized_gemm
