#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/decode_rounds.hpp"
#include "kernels/templates/attention/packing.hpp"
#include "kernels/templates/attention/prefill.hpp"
#include "kernels/templates/attention/slices.hpp"

/// Attention for few queries, bound by reading the keys and values once.
namespace greta::kernels::attention {
namespace {

constexpr std::int64_t most_tokens = 16;    // look-ups round larger extents: docs/lookup.md
constexpr std::int64_t most_queries = 128;  // tokens times heads that share a KV head
constexpr std::int64_t most_rows = 16;      // of these, per workgroup
constexpr std::int64_t join_floats = 6144;  // of shared memory, see decode.hip

std::int64_t queries_of(const Shape& shape) {
  return shape.queries * shape.group();
}

/// Returns the number of workgroups that share the queries of a KV head.
std::int64_t parts_of(const Shape& shape) {
  return ceil_div(queries_of(shape), most_rows);
}

std::int64_t rows_of(const Shape& shape) {
  return ceil_div(queries_of(shape), parts_of(shape));
}

/// Returns the number of workgroups that read the same slice of their keys.
std::int64_t readers_of(const Shape& shape) {
  return shape.batch * shape.kv_heads * parts_of(shape);
}

auto slots_of(const auto& c) {
  return c["THREADS"] / c["LANES"];
}

/// Return the elements of a head of keys, and of values, per thread.
auto elements_of(const Shape& shape, const auto& c) {
  return ceil_div(shape.dim, c["LANES"]);
}
auto values_of(const Shape& shape, const auto& c) {
  return ceil_div(shape.v_dim, c["LANES"]);
}

/// Returns the size of shared memory: the slots' partial sums of some rows, or what joins slices.
auto shared_bytes(const Shape& shape, const DeviceInfo& device, const auto& c) {
  const auto row = slots_of(c) * (shape.v_dim + 2);
  const auto rows = min(max(join_floats / row, 1), rows_of(shape));
  const auto slices = device.language == Language::glsl ? rows_of(shape) * c["SPLIT"] * 3
                                                        : slices_floats(rows_of(shape), c["SPLIT"]);
  return 4 * max(row * rows, slices);
}

/// Returns the number of 32-bit registers that a thread uses at once: those of its accumulators. If
/// registers are scarce, compilers delay loads, and keep shared queries in scalar registers.
Expression least_registers(const Shape& shape) {
  return rows_of(shape) * (values_of(shape, p) + 2);
}

/// Returns an estimate of a thread's 32-bit registers: queries, accumulators, keys and values in
/// flight, one of them in f32, scores, addresses.
auto registers_of(const Shape& shape, const auto& c) {
  const auto elements = elements_of(shape, c), values = values_of(shape, c);
  const auto loads =
      (ceil_div(elements, c["VEC"]) + ceil_div(values, c["VEC"])) * shape.load_registers(c["VEC"]);
  return rows_of(shape) * (elements + values + 2) +
         c["UNROLL"] * ((1 + c["AHEAD"]) * loads + max(elements, values) + 1) + 24;
}

auto partial_bytes(const Shape& shape, const auto& split) {
  return slices_bytes(shape, readers_of(shape) * rows_of(shape), split);
}

std::vector<Constraint> problem_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t queries = queries_of(shape), groups = most_workgroups(device);
  return {
      {"equal_queries", "packed sequences have different numbers of queries", (!shape.packed)},
      {"few_queries",
       fmt::format("decode needs q <= {} and q x heads / kv_heads <= {}, they are {} and {}",
                   most_tokens, most_queries, shape.queries, queries),
       (shape.queries <= most_tokens && queries <= most_queries)},
      {"pieces",
       shape.v_dim == shape.dim
           ? fmt::format("LANES x VEC must divide dim, {}", shape.dim)
           : fmt::format("LANES x VEC must divide dim, {}, and v_dim, {}", shape.dim, shape.v_dim),
       std::gcd(shape.dim, shape.v_dim) % (p["LANES"] * p["VEC"]) == 0},
      {"slices", fmt::format("SPLIT slices of {} keys must have 16 and more", shape.capacity),
       p["SPLIT"] == 1 || p["SPLIT"] * 16 <= rounded_capacity(shape)},
      {"grid",
       fmt::format("{} sequences of {} KV heads, {} queries of each, need more than {} workgroups",
                   shape.batch, shape.kv_heads, queries, groups),
       (readers_of(shape) <= groups)},
      workspace_constraint(device, p["SPLIT"] == 1, partial_bytes(shape, p["SPLIT"])),
  };
}

std::vector<Constraint> workgroup_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device);
  const std::int64_t shared = std::min<std::int64_t>(device.shared_memory_bytes, 48 << 10);
  const int wave = static_cast<int>(device.min_subgroup_size);
  const int whole = static_cast<int>(device.max_subgroup_size);
  return {
      {"workgroup_threads",
       fmt::format("THREADS must be whole subgroups, and not more than {}", threads),
       p["THREADS"] <= threads && p["THREADS"] % whole == 0},
      {"lanes", fmt::format("LANES must be in one subgroup, of {} threads", wave),
       p["LANES"] <= wave},
      {"shared_memory",
       fmt::format("a row's sums of all THREADS, and of SPLIT slices, must fit {} KiB",
                   shared / 1024),
       shared_bytes(shape, device, p) <= shared},
      // Mesa's compiler crashes on some kernels that spill, so for GLSL the estimate decides.
      register_constraint(
          device, fmt::format("sums of {} queries", rows_of(shape)),
          device.language == Language::glsl ? registers_of(shape, p) : least_registers(shape),
          p["THREADS"]),
  };
}

Constraint code_size(const Shape& shape) {
  return {"code_size", "more than 1024 multiplications of a thread in a round compile slowly",
          rows_of(shape) * ceil_div(shape.longest(), p["LANES"]) * p["UNROLL"] <= 1024};
}

/// Returns an upper bound of the loop iterations of a thread: those of each round, since Mesa's CPU
/// driver leaves loops with constant bounds as they are, and counts them all.
auto iterations(const Shape& shape, const auto& c) {
  const auto rounds = ceil_div(shape.capacity, slots_of(c) * c["UNROLL"] * c["SPLIT"]);
  return rounds * (8 + rows_of(shape) * c["UNROLL"] * (ceil_div(shape.longest(), c["LANES"]) + 8));
}

/// Returns the constraints of a CPU through Vulkan.
std::vector<Constraint> decode_cpu_constraints(const Shape& shape) {
  return {
      {"code_size", "more than 64 multiplications of a thread in a round compile slowly for a CPU",
       rows_of(shape) * ceil_div(shape.longest(), p["LANES"]) * p["UNROLL"] <= 64},
      loop_limit(iterations(shape, p), shape.capacity),
  };
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"decode", {}, {}};
  // LANES   threads that share a key
  // VEC     elements of a key per load
  // UNROLL  keys and values in flight per LANES threads
  // AHEAD   1: the next keys and values are prefetched
  // SPLIT   workgroups that share the keys of a KV head; more than 16 queries per KV head use
  //         further workgroups
  a.parameters = {
      {"THREADS", {64, 128, 256, 512}},
      {"LANES", {1, 2, 4, 8, 16, 32}},
      {"VEC", vector_widths(shape.in)},
      {"UNROLL", {1, 2, 4, 8}},
      {"AHEAD", {0, 1}},
      {"SPLIT", key_slices()},
  };
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, problem_constraints(shape, device));
  append(a.constraints, workgroup_constraints(shape, device));
  append(a.constraints,
         vectorising_cpu(device) ? decode_cpu_constraints(shape) : std::vector{code_size(shape)});
  return a;
}

/// Slices fill the device four times as long as they have 64 keys, and 16 times as long as they
/// have 512.
int split_for(const Shape& shape, const DeviceInfo& device) {
  if (vectorising_cpu(device)) return 1;
  const std::int64_t readers = readers_of(shape), busy = busy_workgroups(device);
  int split = 1;
  const auto worth = [&](std::int64_t rounds, std::int64_t keys) {
    return readers * split < rounds * busy && shape.capacity >= 2 * split * keys;
  };
  while (split < 64 && (worth(4, 64) || worth(16, 512))) split *= 2;
  return split;
}

/// Doubles SPLIT, the last parameter, until a CPU's driver runs all iterations.
void shorten_slices(const Shape& shape, Config& config) {
  int& split = config.values.back().second;
  while (split < 64 && iterations(shape, config) >= most_iterations) split *= 2;
}

/// The fastest rounds where they are predicted. Elsewhere wide loads with as many lanes as they
/// permit, and fewer loads in flight for more queries. Many queries of few heads, and many heads,
/// are left to the variant `matrix`.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  if (fits_matrix_rows(shape, device)) return configs;
  if (queries_of(shape) > (shape.queries > 4 ? most_rows : most_queries)) return configs;
  const Readers readers{readers_of(shape), rows_of(shape)};
  if (auto config = fastest_rounds(shape, device, readers, space(shape, device))) {
    return {*std::move(config)};
  }
  const int split = split_for(shape, device);
  const int unroll = vectorising_cpu(device) ? 1 : rows_of(shape) <= 2 ? 4 : 2;
  for (const int most : {unroll, 1}) {
    for (const int vec : {8, 4, 2, 1}) {
      for (const int lanes : {16, 32, 8, 4, 2, 1}) {
        for (const int threads : {256, 128, 64}) {
          configs.push_back({"decode",
                             {{"THREADS", threads},
                              {"LANES", lanes},
                              {"VEC", vec},
                              {"UNROLL", most},
                              {"AHEAD", 0},
                              {"SPLIT", split}}});
          if (vectorising_cpu(device)) shorten_slices(shape, configs.back());
        }
      }
    }
  }
  roomy_first(configs, device, [&shape](const Config& c) { return registers_of(shape, c); });
  return configs;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  Defines defines = problem_defines(shape);
  add_parameters(defines, config);
  defines.emplace_back("ROWS", std::to_string(rows_of(shape)));
  defines.emplace_back("PARTS", std::to_string(parts_of(shape)));
  defines.emplace_back("QUERIES", std::to_string(queries_of(shape)));
  defines.emplace_back("GROUP", std::to_string(shape.group()));
  add_pack(defines, device, "IN", shape.in, config["VEC"]);
  const int split = config["SPLIT"];
  LaunchPlan plan;
  if (split > 1) {  // the last slice to finish combines all
    plan.zeroed_bytes = counter_bytes(readers_of(shape));
    plan.workspace_bytes =
        plan.zeroed_bytes + static_cast<std::uint64_t>(partial_bytes(shape, split));
  }
  const auto list = arguments(shape, 1, split > 1, plan.zeroed_bytes);
  plan.sources.push_back(
      kernel_source(device, "attention/decode", defines, config["THREADS"], list));
  const auto readers = static_cast<std::uint64_t>(readers_of(shape));
  plan.launches.push_back({0, grid(device, plan.sources[0], readers, split), list});
  return plan;
}

/// The queries of a KV head are divided into parts, its keys into slices, and these into rounds.
/// The keys of a sequence determine the length of its slices: multiples of SPLIT keys are equal
/// slices, and those of a round of each slice are whole rounds, too.
std::vector<Division> divisions(const Shape& shape, const Config& c) {
  std::vector<Division> list{
      {"queries of a KV head", queries_of(shape), rows_of(shape), "", never},
      {"kv", shape.capacity, c["SPLIT"], "SPLIT", never},
      {"slices of kv", shape.capacity, slots_of(c) * c["UNROLL"] * c["SPLIT"]}};
  for (Division& division : window_divisions(shape)) list.push_back(std::move(division));
  return list;
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double in = bytes_of(shape.in, 1), split = config["SPLIT"], lanes = config["LANES"];
  const auto both = static_cast<double>(shape.both_dims()),
             v_dim = static_cast<double>(shape.v_dim);
  const auto rows = static_cast<double>(rows_of(shape));
  const auto seen = static_cast<double>(shape.seen_keys());
  const double keys = std::ceil(seen / split);
  const double at_once = slots_of(config) * config["UNROLL"];
  const auto readers = static_cast<double>(readers_of(shape));
  LaunchWork work;
  work.workgroups = readers * split;
  work.threads = config["THREADS"];
  work.shared_bytes = static_cast<double>(shared_bytes(shape, device, config));
  work.registers = static_cast<double>(compiled_by_nvrtc(device)
                                           ? registers_with_nvrtc(shape, rows_of(shape), config)
                                           : registers_of(shape, config));
  work.steps = std::ceil(keys / at_once);
  // The threads that share a key add their products in log2(LANES) exchanges.
  const double of_key = rows * (2 * both + lanes * (flops_of_weight + 2 * std::log2(lanes)));
  work.vector_flops = work.steps * at_once * of_key;
  work.read_bytes = keys * both * in;
  work.written_bytes = rows * v_dim * (split > 1 ? 4 : bytes_of(shape.out, 1));
  work.loads = work.steps * at_once * both / config["VEC"];
  work.ahead_bytes = (1 + config["AHEAD"]) * at_once * both * in;
  work.overlapped = config["AHEAD"] != 0;
  work.barriers = 4 + (split > 1 ? barriers_of_arrival(4 * split * rows * v_dim) : 0);
  work.shared_traffic = 8 * slots_of(config) * rows * v_dim;
  work.unique_bytes = readers / static_cast<double>(parts_of(shape)) * seen * both * in +
                      (split > 1 ? 2 * split * readers * rows * v_dim * 4 : 0);
  return {work};
}

}  // namespace

Variant decode() {
  Variant variant = attention_variant(
      "decode",
      "few queries, bound by reading the keys once: heads that share a KV head read a slice of its "
      "keys together, and the last slice joins them all",
      space, plan, defaults, divisions, work);
  variant.migrations = {added("AHEAD", 0)};
  return variant;
}

}  // namespace greta::kernels::attention
