#include "kernels/templates/latent_attention/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/pages.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/lengths.hpp"
#include "kernels/templates/attention/slices.hpp"

namespace greta::kernels::latent {
namespace {

/// What problems of both operations have; the head sizes are set.
Shape with_options(const Problem& problem, Shape shape) {
  shape.in = problem.dtype;
  shape.out = problem.out_dtype;
  shape.batch = problem.dim("batch");
  shape.heads = problem.dim("heads");
  shape.queries = problem.dim("q");
  shape.capacity = problem.dim("kv");
  shape.q_stride = problem.stride("q_stride", shape.heads * shape.dim);
  const std::string scale = problem.attribute("scale", "auto");
  shape.scale = scale == "auto" ? 1 / std::sqrt(static_cast<double>(shape.dim))
                                : std::strtof(scale.c_str(), nullptr);
  shape.lse = problem.attribute("lse", "none") != "none";
  shape.page = page_of(problem);
  shape.ragged = problem.attribute("lengths", "full") == "ragged";
  return shape;
}

constexpr int join_threads = 128;  ///< of rows_join.hip

/// Returns the rows of a workgroup of rows_join.hip: 4, 2 or 1, which divide tiles. A thread has at
/// most 16 loads in flight, unless there are more slices.
std::int64_t rows_of_join(const Config& config) {
  return config["SPLIT"] <= 4 ? 4 : config["SPLIT"] <= 8 ? 2 : 1;
}

/// Operands are in the order of tensors(). With SHARED the cache is both K and V. Bits of a tree
/// come first in HIP, and take the place of sinks in GLSL, whose block of arguments is attention's.
std::vector<Argument> arguments(const Shape& shape, Language language, std::int64_t tiles,
                                bool workspace, std::uint64_t counter_bytes) {
  std::vector<Argument> list;
  std::size_t next = 0;
  const auto operand = [&] { return Argument{OperandArgument{next++}}; };
  list.push_back(operand());  // Q
  list.push_back(operand());  // K
  list.push_back(shape.shared ? list.back() : operand());
  list.push_back(operand());  // lengths
  if (shape.page > 0) list.push_back(operand());
  std::vector<Argument> tree;
  if (shape.tree) tree.push_back(operand());
  if (language == Language::glsl) list.insert(list.end(), tree.begin(), tree.end());
  list.push_back(operand());  // out
  if (shape.lse) list.push_back(operand());
  for (const std::uint64_t offset : {counter_bytes, std::uint64_t{0}}) {
    list.push_back(workspace ? Argument{WorkspaceArgument{offset}} : Argument{std::uint64_t{0}});
  }
  for (const std::int64_t value :
       {shape.batch, shape.heads, shape.kv_heads, shape.queries, shape.capacity, tiles}) {
    list.emplace_back(static_cast<std::uint32_t>(value));
  }
  constexpr double log2_e = 1.4426950408889634;  // kernels compute 2^x
  list.emplace_back(static_cast<float>(shape.scale * log2_e));
  if (language == Language::hip) list.insert(list.begin(), tree.begin(), tree.end());
  return list;
}

}  // namespace

Shape latent_shape(const Problem& problem) {
  Shape shape{};
  shape.v_dim = problem.dim("latent");
  shape.dim = shape.v_dim + problem.dim("rope");
  shape.kv_heads = 1;
  shape.shared = true;
  const std::string mask = problem.attribute("mask", "none");
  shape.causal = mask == "causal";
  shape.tree = mask == "tree";
  return with_options(problem, shape);
}

Shape tree_shape(const Problem& problem) {
  Shape shape{};
  shape.v_dim = shape.dim = problem.dim("dim");
  shape.kv_heads = problem.dim("kv_heads");
  shape.tree = true;
  return with_options(problem, shape);
}

std::vector<TensorSpec> tensors(const Shape& s) {
  const std::int64_t tokens = s.batch * s.queries, rows = tokens * s.heads;
  const std::int64_t keys = s.batch * s.kv_heads * (s.page > 0 ? s.pages() * s.page : s.capacity);
  TensorSpec q{"Q", Role::input, s.in, rows, s.dim};
  if (s.q_stride > 0) q = {"Q", Role::input, s.in, tokens, s.heads * s.dim, s.q_stride};
  std::vector<TensorSpec> list{q};
  const bool paged = s.page > 0;
  list.push_back({s.shared ? "cache" : "K", Role::input, s.in, keys, s.dim, 0, false, paged});
  if (!s.shared) list.push_back({"V", Role::input, s.in, keys, s.v_dim, 0, false, paged});
  list.push_back({"lengths", Role::input, DType::i32, 1, s.batch});
  if (paged) list.push_back({"block_table", Role::input, DType::i32, s.batch, s.pages()});
  if (s.tree) list.push_back({"tree", Role::input, DType::i32, tokens, s.words()});
  list.push_back({"out", Role::output, s.out, rows, s.v_dim});
  if (s.lse) list.push_back({"lse", Role::output, DType::f32, tokens, s.heads});
  return list;
}

Work least_work(const Shape& s) {
  double pairs = 0;
  std::int64_t keys = 0;
  attention::for_each_length(s, [&](const attention::Lengths& lengths, std::int64_t count) {
    const auto q = static_cast<double>(lengths.queries), kv = static_cast<double>(lengths.keys);
    const double hidden = s.causal || s.tree ? std::min(q, kv) * std::min(q, kv) / 2 : 0;
    pairs += (q * kv - hidden) * static_cast<double>(count);
    keys += lengths.keys * count;
  });
  Work least;
  least.flops = 2 * static_cast<double>(s.heads * s.both_dims()) * pairs;
  auto operands = tensors(s);
  std::erase_if(operands, [](const TensorSpec& tensor) { return tensor.name == "lengths"; });
  for (TensorSpec& tensor : operands) {
    const bool cached = tensor.name == "cache" || tensor.name == "K" || tensor.name == "V";
    if (cached) tensor.rows = keys * s.kv_heads;
  }
  least.bytes = operand_bytes(operands);
  return least;
}

std::vector<Constraint> rows_constraints(const Shape& shape, const DeviceInfo& device,
                                         const Expression& rows) {
  const std::int64_t groups = most_workgroups(device);
  // The same for all numbers of queries that are looked up together.
  const std::int64_t most =
      std::max<std::int64_t>(16, next_power(next_power(shape.queries) * shape.group()));
  return {
      {"tile",
       fmt::format("tiles of more than {} rows are mostly idle: {} queries of {} heads share keys",
                   most, shape.queries, shape.group()),
       rows <= most},
      {"grid",
       fmt::format("{} sequences of {} heads and {} queries are more than {} workgroups",
                   shape.batch, shape.heads, shape.queries, groups),
       readers_of(shape, rows) <= groups},
      {"slices", fmt::format("SPLIT slices of {} keys must have BK each", shape.capacity),
       p["SPLIT"] <= ceil_div(attention::rounded_capacity(shape), p["BK"])},
      attention::workspace_constraint(
          device, p["SPLIT"] == 1,
          attention::slices_bytes(shape, readers_of(shape, rows) * rows, p["SPLIT"])),
  };
}

std::vector<Division> rows_divisions(const Shape& shape, const Config& c, std::int64_t rows) {
  // Slices have the same number of tiles, if all of them are whole. A buffer is filled again where
  // a slice has more tiles than buffers.
  const std::int64_t keys = std::int64_t{c["BK"]} * c["SPLIT"];
  const std::int64_t buffers = c.has("BUFFERS") ? c["BUFFERS"] : 1;
  return {{"queries x heads", shape.rows(), rows, c.has("BQ") ? "BQ" : ""},
          {"kv", shape.capacity, c["BK"], "BK"},
          {"slices of kv", shape.capacity, keys},
          {"tiles of a slice", ceil_div(shape.capacity, keys), buffers + 1}};
}

LaunchWork rows_work(const Shape& shape, const Config& config, std::int64_t rows) {
  const double split = config["SPLIT"], bk = config["BK"];
  const double in = bytes_of(shape.in, 1), out = bytes_of(shape.out, 1);
  const auto own = static_cast<double>(std::min(rows, shape.rows()));
  const auto dim = static_cast<double>(shape.dim), v_dim = static_cast<double>(shape.v_dim);
  const auto key = static_cast<double>(shape.read_elements());
  const auto readers = static_cast<double>(readers_of(shape, rows));
  LaunchWork work;
  work.workgroups = readers * split;
  work.steps = std::ceil(std::ceil(static_cast<double>(shape.capacity) / bk) / split);
  work.read_bytes = (work.steps * bk * key + own * dim) * in;
  work.written_bytes = own * v_dim * (split > 1 ? 4 : out);
  work.ahead_bytes = bk * key * in;
  work.unique_bytes =
      static_cast<double>(shape.batch * shape.heads * shape.queries) * (dim * in + v_dim * out) +
      static_cast<double>(shape.batch * shape.kv_heads * shape.capacity) * key * in;
  if (split > 1) {
    if (!has_join(config)) work.barriers = barriers_of_arrival(4 * split * own * v_dim);
    // What slices leave is written, and read where it is joined.
    work.unique_bytes += (has_join(config) ? 1 : 2) * work.workgroups * own * v_dim * 4;
  }
  return work;
}

bool streams(const Config& config) {
  return config.has("STREAM_K") && config["STREAM_K"] != 0;
}

double Stream::parts(const Shape& shape) const {
  const auto all = static_cast<double>(shape.batch);
  return groups == 1 ? all : all / static_cast<double>(groups) + 1;
}

double Stream::sharers(const Shape& shape) const {
  return groups == 1 ? 1 : static_cast<double>(groups) / static_cast<double>(shape.batch) + 1;
}

Stream stream_of(const Shape& shape, const DeviceInfo& device, std::int64_t rows) {
  const std::int64_t tiles = ceil_div(shape.rows(), rows);
  return {.groups = std::max(busy_workgroups(device) / tiles, std::int64_t{1}), .tiles = tiles};
}

LaunchWork streamed_work(const Shape& shape, const DeviceInfo& device, const Config& config,
                         std::int64_t rows) {
  LaunchWork work = rows_work(shape, config, rows);
  const Stream stream = stream_of(shape, device, rows);
  const double parts = stream.parts(shape);
  work.workgroups = static_cast<double>(stream.workgroups());
  work.steps =
      std::ceil(work.steps * static_cast<double>(shape.batch) / static_cast<double>(stream.groups));
  const double in = bytes_of(shape.in, 1), bk = config["BK"];
  const auto dim = static_cast<double>(shape.dim), v_dim = static_cast<double>(shape.v_dim);
  const auto own = static_cast<double>(std::min(rows, shape.rows()));
  work.read_bytes =
      (work.steps * bk * static_cast<double>(shape.read_elements()) + parts * own * dim) * in;
  if (stream.groups == 1) {
    work.written_bytes = parts * own * v_dim * bytes_of(shape.out, 1);
  } else {
    work.written_bytes = parts * own * v_dim * 4;
    work.unique_bytes += work.workgroups * 2 * own * v_dim * 4;
  }
  return work;
}

bool has_join(const Config& config) {
  if (streams(config)) return true;
  if (config.variant == "warpgroups" || config.variant == "pingpong") return config["SPLIT"] > 1;
  return config.has("FOLD") && config["FOLD"] == 0;
}

LaunchWork join_work(const Shape& shape, const Config& config, std::int64_t rows, double slices) {
  const auto joined = static_cast<double>(rows_of_join(config));
  const auto values = static_cast<double>(shape.v_dim);
  LaunchWork work;
  work.threads = join_threads;
  work.workgroups = static_cast<double>(readers_of(shape, rows) * rows) / joined;
  work.registers = 48;
  work.read_bytes = work.ahead_bytes = 4 * slices * (values + 2) * joined;
  work.written_bytes = values * bytes_of(shape.out, 1) * joined;
  work.loads = work.read_bytes / 16;
  work.vector_flops = 2 * slices * values * joined;
  work.unique_bytes = work.workgroups * work.read_bytes;  // the output is counted with the rows
  return work;
}

LaunchPlan rows_plan(const Shape& shape, const DeviceInfo& device, std::string_view path,
                     const Config& config, Defines defines, std::int64_t rows,
                     std::int64_t threads) {
  const bool glsl = device.language == Language::glsl;
  for (auto& [name, value] : defines) {
    if (name == "SINKS" && glsl && shape.tree) value = "1";
  }
  add_parameters(defines, config);
  defines.emplace_back("SHARED", shape.shared ? "1" : "0");
  defines.emplace_back("TREE", shape.tree ? "1" : "0");
  defines.emplace_back("GROUP", std::to_string(shape.group()));
  const int split = config["SPLIT"];
  const std::int64_t readers = readers_of(shape, rows);
  std::int64_t workgroups = readers;
  int left = split;  // by a workgroup, for a tile's rows
  if (streams(config)) {
    const Stream stream = stream_of(shape, device, rows);
    workgroups = stream.workgroups();
    left = stream.groups > 1 ? 2 : 1;  // of the sequences with which it begins and ends
    defines.emplace_back("UNITS", std::to_string(busy_workgroups(device)));
  }
  LaunchPlan plan;
  if (left > 1) {
    plan.zeroed_bytes = counter_bytes(readers);
    plan.workspace_bytes = plan.zeroed_bytes + static_cast<std::uint64_t>(attention::slices_bytes(
                                                   shape, workgroups * rows, left));
  }
  const auto list =
      arguments(shape, device.language, ceil_div(shape.rows(), rows), left > 1, plan.zeroed_bytes);
  plan.sources.push_back(kernel_source(device, path, defines, threads, list));
  plan.launches.push_back(
      {0, grid(device, plan.sources[0], static_cast<std::uint64_t>(workgroups), split), list});
  if (left == 1 || !has_join(config)) return plan;
  const auto count = static_cast<std::uint64_t>(readers);
  const std::string join = std::string(path.substr(0, path.find('/'))) + "/join";
  const std::int64_t joined = rows_of_join(config);
  defines.emplace_back("TILE_ROWS", std::to_string(rows));
  defines.emplace_back("JOIN_ROWS", std::to_string(joined));
  plan.sources.push_back(kernel_source(device, join, defines, join_threads, list));
  plan.launches.push_back(
      {1, grid(device, plan.sources[1], count * static_cast<std::uint64_t>(rows / joined)), list});
  return plan;
}

int split_for(const Shape& shape, const DeviceInfo& device, std::int64_t rows, int of_unit,
              std::int64_t keys) {
  const std::int64_t readers = readers_of(shape, rows);
  int best = 1;
  for (const int split : attention::key_slices()) {
    const bool fits = readers * split <= of_unit * busy_workgroups(device);
    if (fits && split * keys <= shape.capacity) best = split;
  }
  return best;
}

}  // namespace greta::kernels::latent
