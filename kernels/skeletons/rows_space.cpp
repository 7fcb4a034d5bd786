#include "kernels/skeletons/rows_space.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::rows {
namespace {

/// Returns the maximum number of elements that a thread holds, limited by registers and, on CPUs,
/// compile time.
int most_held(const DeviceInfo& device) {
  return vectorising_cpu(device) ? 32 : 64;
}

/// Returns the number of vectors of a row that each of `lanes` threads reads.
Expression vectors_of(std::int64_t cols, const Expression& lanes) {
  return ceil_div(cols, lanes * p["VEC"]);
}

/// Returns the supported subgroup sizes. 0: any size, with reductions through shared memory.
std::vector<int> subgroup_sizes(const DeviceInfo& device) {
  std::vector<int> sizes{0};
  if (!device.subgroup_size_control) return sizes;
  for (std::uint32_t size = device.min_subgroup_size; size <= device.max_subgroup_size && size > 0;
       size *= 2) {
    sizes.push_back(static_cast<int>(size));
  }
  return sizes;
}

/// Reductions need whole waves or subgroups.
Constraint whole_waves(const DeviceInfo& device) {
  if (device.language == Language::hip) {
    const int wave = static_cast<int>(device.subgroup_size);
    return {"whole_waves", fmt::format("THREADS must be a multiple of the subgroup size {}", wave),
            p["THREADS"] % wave == 0};
  }
  constexpr int most = 32;  // supported by every driver
  return {"whole_waves", fmt::format("THREADS must be 1 to {} whole subgroups", most),
          p["SUBGROUP"] == 0 ||
              (p["THREADS"] % p["SUBGROUP"] == 0 && p["THREADS"] / p["SUBGROUP"] <= most)};
}

/// Returns the constraints of every variant's workgroups, but for reductions.
std::vector<Constraint> limits(const Shape& s, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device);
  return {storage_constraint(s.in, s.out, device),
          {"workgroup_threads", fmt::format("the device allows {} threads", threads),
           p["THREADS"] <= threads}};
}

std::vector<Constraint> basics(const Shape& s, const DeviceInfo& device) {
  std::vector<Constraint> list = limits(s, device);
  list.push_back(whole_waves(device));
  return list;
}

/// Every row must begin at an aligned address.
std::vector<Constraint> alignment(const Shape& s) {
  const std::int64_t cols = s.cols;
  std::vector<Constraint> constraints = stride_constraints(s.strides);
  constraints.insert(
      constraints.begin(),
      {"alignment", fmt::format("VEC must divide cols, {}", cols), cols % p["VEC"] == 0});
  return constraints;
}

/// Constraints for several rows per workgroup, so that no threads idle.
std::vector<Constraint> several_rows(const Shape& s, const DeviceInfo& device) {
  const std::int64_t rows = s.rows, cols = s.cols;
  const std::int64_t groups = most_workgroups(device);
  return {{"rows_of_workgroup",
           fmt::format("ROWS must not exceed THREADS, or the next power of 2 after rows, {}", rows),
           p["ROWS"] <= p["THREADS"] && p["ROWS"] <= next_power(rows)},
          {"idle_threads",
           fmt::format("THREADS / ROWS vectors of VEC must not be twice a row, {}, or more", cols),
           p["THREADS"] / p["ROWS"] * p["VEC"] < 2 * next_power(cols)},
          {"grid", fmt::format("rows / ROWS must not exceed {} workgroups", groups),
           ceil_div(rows, p["ROWS"]) <= groups}};
}

/// The error bounds hold for sums of limited length (kernels/reference/rows.hpp), and loops of
/// Mesa's CPU driver for most_iterations.
Constraint few_rounds(const Shape& s, const Expression& lanes) {
  const std::int64_t cols = s.cols, most = std::max<std::int64_t>(8, cols / 256);
  return {"rounds",
          fmt::format("a thread must add the elements of a row in at most {} rounds",
                      std::min(most, most_iterations)),
          ceil_div(vectors_of(cols, lanes), p["ITEMS"]) <= std::min(most, most_iterations)};
}

/// The code size grows with the number of loads per round.
Constraint loads_in_flight(const DeviceInfo& device) {
  const int most = most_held(device);
  return {"loads", fmt::format("VEC x ITEMS must not exceed {}", most),
          p["VEC"] * p["ITEMS"] <= most};
}

const std::vector<int> thread_counts{32, 64, 128, 256, 512, 1024};
const std::vector<int> row_counts{1, 2, 4, 8, 16, 32, 64, 128};

void add_subgroup(Alternative& space, const DeviceInfo& device) {
  if (device.language == Language::glsl)
    space.parameters.push_back({"SUBGROUP", subgroup_sizes(device)});
}

}  // namespace

std::int64_t inputs_of(const Shape& s) {
  return 1 + (has(s.tensors, "mask") || has(s.tensors, "residual") ? 1 : 0);
}

std::int64_t weights_of(const Shape& s) {
  const auto weight = [](const TensorSpec& t) {
    return t.name == "weight" || t.name == "bias" || t.name == "gain";
  };
  return std::count_if(s.tensors.begin(), s.tensors.end(), weight);
}

std::int64_t vectors_of_thread(std::int64_t cols, const Config& c) {
  const auto value = [&c](const char* name) { return c.has(name) ? c[name] : 1; };
  const std::int64_t lanes = c["THREADS"] / value("ROWS") * value("CLUSTER");
  return ceil_div(cols, lanes * value("VEC"));
}

std::int64_t staged_bytes(const Shape& s, const Config& c) {
  const std::int64_t held = vectors_of_thread(s.cols, c) * c["VEC"];
  const std::int64_t common = c["KEEP"] == in_shared_memory ? weights_of(s) : 0;
  return (c["AHEAD"] * inputs_of(s) + common) * c["THREADS"] * held * bits_of(s.in) / 8;
}

/// Clusters find no place where fewer processors than they need are left of a group of these, and
/// workgroups that wait for a place would start when all others have ended.
std::int64_t staged_groups(const Shape& s, const DeviceInfo& device, const Config& c) {
  const std::int64_t places = busy_workgroups(device) * c["STAY"];
  const std::int64_t usable = c["CLUSTER"] > 2 ? places * 7 / 8 : places;
  return std::clamp<std::int64_t>(usable / c["CLUSTER"], 1, s.rows);
}

Alternative held_space(const Shape& s, const DeviceInfo& device) {
  // THREADS  workgroup size for ROWS rows: more threads per row exchange more data but hold less
  // VEC      elements per load
  // STAY     persistent workgroups per compute unit that prefetch the next row; 0: one workgroup
  // per ROWS rows
  Alternative a{
      "held",
      {{"THREADS", thread_counts},
       {"ROWS", row_counts},
       {"VEC", vector_widths(s.in)},
       {"STAY", vectorising_cpu(device) ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 4, 8}}},
      basics(s, device)};
  add_subgroup(a, device);
  append(a.constraints, alignment(s));
  append(a.constraints, several_rows(s, device));
  const std::int64_t cols = s.cols, most = most_held(device);
  const Expression held = vectors_of(cols, p["THREADS"] / p["ROWS"]) * p["VEC"];
  const Expression ahead = select(p["STAY"] > 0, ceil_div(held * bits_of(s.in), 32), 0);
  a.constraints.push_back(
      {"held",
       fmt::format("THREADS / ROWS threads must hold a row of {} with at most {} elements each",
                   cols, most),
       held <= most});
  constexpr int most_loads = 32;  // more loads crash the compilers of some drivers
  a.constraints.push_back(
      {"loads",
       fmt::format("a thread must hold its share of a row in at most {} vectors", most_loads),
       vectors_of(cols, p["THREADS"] / p["ROWS"]) <= most_loads});
  a.constraints.push_back(
      register_constraint(device, "rows that threads hold", held + ahead, p["THREADS"]));
  return a;
}

Alternative staged_space(const Shape& s, const DeviceInfo& device) {
  // THREADS  workgroup size for a row, or a part of one
  // STAY     workgroups per compute unit that stay, for as many of which there are registers
  // AHEAD    next rows of a workgroup that arrive in shared memory while it works on one
  // CLUSTER  workgroups that share a row, each of which has the same columns of all its rows
  // KEEP     1: weights of columns stay in registers, 2: in shared memory, 0: they are loaded for
  //          each row
  const bool copies = has_lane_copies(device.architecture) && device.language == Language::hip;
  Alternative a{"staged",
                {{"THREADS", thread_counts},
                 {"VEC", vector_widths(s.in)},
                 {"STAY", {1, 2, 4}},
                 {"AHEAD", {1, 2, 3, 4}},
                 {"CLUSTER", has_clusters(device.architecture) ? std::vector<int>{1, 2, 4, 8}
                                                               : std::vector<int>{1}},
                 {"KEEP", {0, in_registers, in_shared_memory}}},
                {{"lane_copies", "threads of the device cannot copy to shared memory", copies}}};
  append(a.constraints, limits(s, device));
  append(a.constraints, alignment(s));
  const std::int64_t rows = next_power(s.rows), cols = s.cols, busy = busy_workgroups(device);
  const std::int64_t most = most_held(device), most_loads = 32, resident = 2048;
  const std::int64_t weights = weights_of(s), bits = bits_of(s.in);
  const std::int64_t shared = device.shared_memory_bytes;
  const Expression vectors = vectors_of(cols, p["THREADS"] * p["CLUSTER"]);
  const Expression held = vectors * p["VEC"];
  const Expression rows_kept =
      p["AHEAD"] * inputs_of(s) + select(p["KEEP"] == in_shared_memory, weights, 0);
  const Expression bytes = rows_kept * p["THREADS"] * held * bits / 8;
  const Expression kept = select(p["KEEP"] == in_registers, ceil_div(held * bits * weights, 32), 0);
  append(
      a.constraints,
      {{"copies", "VEC elements must be at least 4 bytes", p["VEC"] * bits >= 32},
       {"turns",
        fmt::format("{} rows, or the next power of 2, are too few for AHEAD further ones of each "
                    "workgroup",
                    s.rows),
        p["CLUSTER"] * rows > p["AHEAD"] * p["STAY"] * busy},
       {"idle_threads",
        fmt::format("CLUSTER x THREADS vectors of VEC must not be twice a row, {}, or more", cols),
        p["CLUSTER"] * p["THREADS"] * p["VEC"] < 2 * next_power(cols)},
       {"cluster", "workgroups of a CLUSTER have more than 32 THREADS",
        p["CLUSTER"] == 1 || p["THREADS"] > 32},
       {"kept", "there is nothing to KEEP", p["KEEP"] == 0 || weights > 0},
       {"held",
        fmt::format("CLUSTER x THREADS threads must hold a row of {} with at most {} elements, and "
                    "{} vectors, each",
                    cols, most, most_loads),
        held <= most && vectors <= most_loads},
       {"resident", fmt::format("STAY x THREADS must not exceed {}", resident),
        p["STAY"] * p["THREADS"] <= resident},
       {"shared_memory",
        fmt::format("AHEAD rows, and with KEEP=2 weights, of STAY workgroups must fit {} KiB",
                    shared / 1024),
        p["STAY"] * (bytes + 1024) <= shared},
       register_constraint(device, "rows and weights that threads hold", held + kept,
                           p["THREADS"] * p["STAY"])});
  return a;
}

Alternative streamed_space(const Shape& s, const DeviceInfo& device) {
  // ITEMS  loads of VEC elements in flight per thread
  Alternative a{"streamed",
                {{"THREADS", thread_counts},
                 {"ROWS", row_counts},
                 {"VEC", vector_widths(s.in)},
                 {"ITEMS", {1, 2, 4, 8}}},
                basics(s, device)};
  add_subgroup(a, device);
  append(a.constraints, alignment(s));
  append(a.constraints, several_rows(s, device));
  a.constraints.push_back(loads_in_flight(device));
  a.constraints.push_back(few_rounds(s, p["THREADS"] / p["ROWS"]));
  return a;
}

Alternative split_space(const Shape& s, const DeviceInfo& device) {
  // SPLIT  workgroups per row; a second launch merges their results and writes the output
  Alternative a{"split",
                {{"THREADS", thread_counts},
                 {"VEC", vector_widths(s.in)},
                 {"ITEMS", {1, 2, 4, 8}},
                 {"SPLIT", {2, 4, 8, 16, 32, 64, 128}}},
                basics(s, device)};
  add_subgroup(a, device);
  const std::int64_t rows = s.rows, cols = s.cols;
  const std::int64_t groups = most_workgroups(device);
  const auto memory =
      static_cast<std::int64_t>(std::min(device.memory_bytes / 4, device.max_allocation_bytes));
  const std::int64_t part_bytes = s.operation.statistic_words * 4;
  append(a.constraints, alignment(s));
  a.constraints.push_back(loads_in_flight(device));
  a.constraints.push_back(few_rounds(s, p["THREADS"]));
  append(
      a.constraints,
      {{"parts", fmt::format("SPLIT must not exceed THREADS, and SPLIT x VEC not cols, {}", cols),
        p["SPLIT"] <= p["THREADS"] && p["SPLIT"] * p["VEC"] <= cols},
       {"grid", fmt::format("rows x SPLIT must not exceed {} workgroups", groups),
        rows <= groups / p["SPLIT"]},
       {"workspace", fmt::format("the parts' statistics need more than {} MiB", memory >> 20),
        rows <= memory / part_bytes / p["SPLIT"]}});
  return a;
}

Alternative naive_space(const Shape& s, const DeviceInfo& device) {
  Alternative a{"naive", {{"THREADS", {64, 128, 256, 512}}}, {}};
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t rows = s.rows, cols = s.cols;
  const std::int64_t most = std::min(most_iterations, std::max<std::int64_t>(8, cols / 256));
  a.constraints = {
      storage_constraint(s.in, s.out, device),
      {"workgroup_threads", fmt::format("the device allows {} threads", threads),
       p["THREADS"] <= threads},
      {"rounds", fmt::format("a thread must add the elements of a row in at most {} rounds", most),
       ceil_div(cols, p["THREADS"]) <= most},
      {"grid", fmt::format("{} rows are more than {} workgroups", rows, groups), rows <= groups}};
  return a;
}

}  // namespace greta::kernels::rows
