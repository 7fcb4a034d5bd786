#include "kernels/skeletons/rows_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

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

std::int64_t next_power(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
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

/// The error bounds hold for sums of limited length (kernels/reference/rows.hpp), and Mesa's CPU
/// driver ends loops after 65535 iterations.
Constraint few_rounds(const Shape& s, const Expression& lanes) {
  const std::int64_t cols = s.cols, most = std::max<std::int64_t>(8, cols / 256);
  return {"rounds",
          fmt::format("a thread must add the elements of a row in at most {} rounds",
                      std::min<std::int64_t>(most, 60000)),
          ceil_div(vectors_of(cols, lanes), p["ITEMS"]) <= std::min<std::int64_t>(most, 60000)};
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

void add_subgroup(Config& config, const DeviceInfo& device) {
  if (device.language != Language::glsl) return;
  const auto size = static_cast<int>(device.subgroup_size);
  const bool whole = device.subgroup_size_control && config["THREADS"] % size == 0 &&
                     config["THREADS"] / size <= 32;
  config.values.emplace_back("SUBGROUP", whole ? size : 0);
}

/// Returns the registers of column weights. If a thread holds many elements, weights are loaded
/// only when they are needed (fixed_first).
std::int64_t weight_registers(int beside, std::int64_t held, const Config& c) {
  return select(c["STAY"] > 0 || held <= 16, held * beside, 8);
}

/// Returns the number of operands that have a row for each row of the problem and are read.
std::int64_t inputs_of(const Shape& s) {
  return 1 + (has(s.tensors, "mask") || has(s.tensors, "residual") ? 1 : 0);
}

/// Returns the number of operands that all rows have in common.
std::int64_t weights_of(const Shape& s) {
  const auto weight = [](const TensorSpec& t) {
    return t.name == "weight" || t.name == "bias" || t.name == "gain";
  };
  return std::count_if(s.tensors.begin(), s.tensors.end(), weight);
}

/// Returns whether compilers are expected to avoid spills. They need more registers than the space
/// requires.
bool roomy(const Shape& s, const DeviceInfo& device, const Config& c) {
  const std::int64_t held = vectors_of_thread(s.cols, c) * c["VEC"];
  const std::int64_t weights = s.operation.registers_beside == 0
                                   ? 0
                                   : weight_registers(s.operation.registers_beside, held, c);
  // AMD compilers keep values of additive masks and weights in addition to the held elements, and
  // load all weights of a vector at once.
  const auto& operands = s.tensors;
  const std::int64_t beside =
      device.vendor == "AMD" ? held / 2 + 8 * std::max<std::int64_t>(0, weights_of(s) - 1) : 0;
  const std::int64_t needed = held + beside + weights + s.operation.statistic_words + 23;
  // Many scalar loads need additional registers.
  const bool two = has(operands, "mask") || has(operands, "residual");
  if (c["VEC"] == 1 && held > 16 && (two || device.vendor == "AMD")) return false;
  const int most = c["THREADS"] <= 256 ? 48 : 32;
  return held <= most && needed * c["THREADS"] <= register_file(device);
}

}  // namespace

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
  const std::int64_t most = std::min<std::int64_t>(60000, std::max<std::int64_t>(8, cols / 256));
  a.constraints = {
      storage_constraint(s.in, s.out, device),
      {"workgroup_threads", fmt::format("the device allows {} threads", threads),
       p["THREADS"] <= threads},
      {"rounds", fmt::format("a thread must add the elements of a row in at most {} rounds", most),
       ceil_div(cols, p["THREADS"]) <= most},
      {"grid", fmt::format("{} rows are more than {} workgroups", rows, groups), rows <= groups}};
  return a;
}

namespace {

/// Returns the number of threads of a row of `vectors` if there are more rows than units: each
/// loads a few vectors. Up to 5 vectors a thread, a row stays in one wave, which needs no barrier,
/// and up to 6 in a quarter of the largest workgroup, of which several share a unit. 32 threads and
/// less share a row only if all rows keep the device busy.
std::int64_t lanes_of_many(std::int64_t rows, std::int64_t vectors, int loads, std::int64_t busy) {
  constexpr std::int64_t wave = 32, quarter = 256, busy_threads = 512;
  std::int64_t lanes = std::min<std::int64_t>(next_power(ceil_div(vectors, loads)), 1024);
  if (vectors <= 5 * wave) lanes = std::min(lanes, wave);
  if (vectors <= 6 * quarter) lanes = std::min(lanes, quarter);
  const std::int64_t least = next_power(ceil_div(2 * busy * busy_threads, 3 * rows));  // rounded
  return std::max(lanes, std::min({wave, next_power(vectors), least}));
}

}  // namespace

/// A load of 16 bytes per thread if there are fewer rows than units, else three or four
/// (results/2026-11-27-nvidia-h200-row-defaults). Workgroups have at least 128 threads, or one wave
/// if rows are few and short, with loads of less than 16 bytes.
std::vector<Config> held_defaults(const Shape& s, const DeviceInfo& device) {
  const std::int64_t rows = s.rows, cols = s.cols, busy = busy_workgroups(device);
  const int widest = widest_of(s.strides, s.in, s.cols);
  const std::int64_t vectors = cols / widest;
  const bool cpu = vectorising_cpu(device), few = cpu || rows <= busy;
  const std::int64_t least = cpu ? 64 : std::max<std::int64_t>(32, device.subgroup_size);
  std::vector<Config> configs;
  for (const int loads : {few ? 1 : rows < 4 * busy ? 3 : 4, 4, 8, 64}) {
    const std::int64_t lanes =
        few ? std::min<std::int64_t>(next_power(ceil_div(vectors, loads)), cpu ? 8 : 1024)
            : lanes_of_many(rows, vectors, loads, busy);
    const std::int64_t threads = std::max<std::int64_t>(lanes, cpu ? 32 : 128);
    const std::int64_t together = std::min(threads / lanes, next_power(rows));
    const std::int64_t all = std::max(lanes * together, least);
    int vec = widest;
    while (vec > 1 && all / together * vec >= 2 * next_power(cols)) vec /= 2;
    Config config{"held",
                  {{"THREADS", static_cast<int>(all)},
                   {"ROWS", static_cast<int>(together)},
                   {"VEC", vec},
                   {"STAY", 0}}};
    add_subgroup(config, device);
    if (cpu || roomy(s, device, config)) configs.push_back(std::move(config));
  }
  return configs;
}

/// A choice for searches.
std::vector<Config> staged_defaults(const Shape&, const DeviceInfo&) {
  return {};
}

std::vector<Config> streamed_defaults(const Shape& s, const DeviceInfo& device) {
  const int vec = widest_of(s.strides, s.in, s.cols);
  std::vector<Config> configs;
  for (const int threads : {vectorising_cpu(device) ? 32 : 512, 256, 1024}) {
    Config config{"streamed", {{"THREADS", threads}, {"ROWS", 1}, {"VEC", vec}, {"ITEMS", 4}}};
    add_subgroup(config, device);
    configs.push_back(std::move(config));
  }
  return configs;
}

/// For rows that are too few to occupy the device and long enough to split.
std::vector<Config> split_defaults(const Shape& s, const DeviceInfo& device) {
  const std::int64_t rows = s.rows, cols = s.cols;
  const std::int64_t busy = busy_workgroups(device);
  if (vectorising_cpu(device) || 2 * rows > busy || cols < 8192) return {};
  const int vec = widest_of(s.strides, s.in, s.cols);
  int split = 2;
  while (split < 128 && rows * split < busy && cols / split > 4096) split *= 2;
  Config config{"split", {{"THREADS", 256}, {"VEC", vec}, {"ITEMS", 4}, {"SPLIT", split}}};
  add_subgroup(config, device);
  return {config};
}

/// For rows shorter than a wave.
std::vector<Config> naive_defaults(const Shape& s, const DeviceInfo&) {
  if (s.cols >= 64) return {};
  return {{"naive", {{"THREADS", 64}}}};
}

}  // namespace greta::kernels::rows
