#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "kernels/model/random.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/pages.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"
#include "kernels/skeletons/norms.hpp"
#include "kernels/templates/rope_append/parts.hpp"

namespace greta::kernels {
namespace {

/// Most elements that a thread holds, of one head and of all.
constexpr std::int64_t most_of_head = 32, most_of_thread = 64;

std::int64_t packed_queries(const Problem& problem) {
  return problem.dim("heads") * problem.dim("dim");
}
std::int64_t packed_keys(const Problem& problem) {
  return problem.dim("kv_heads") * problem.dim("dim");
}

struct RopeAppendShape {
  explicit RopeAppendShape(const Problem& problem)
      : in(problem.dtype),
        cache(problem.out_dtype),
        batch(problem.dim("batch")),
        rows(batch * problem.dim("tokens")),
        heads(problem.dim("heads")),
        kv_heads(problem.dim("kv_heads")),
        dim(problem.dim("dim")),
        table_rows(problem.dim("positions")),
        capacity(problem.dim("capacity")),
        page(page_of(problem)),
        norm(problem.attribute("norm", "none") == "rms"),
        half(problem.attribute("style", "interleaved") == "half"),
        in_place(problem.attribute("place", "out") == "in"),
        epsilon(rows::epsilon(problem)),
        q_stride(problem.stride("q_stride", packed_queries(problem))),
        kv_stride(problem.stride("kv_stride", packed_keys(problem))),
        strides(strides_of(problem)) {}

  std::int64_t all_heads() const { return heads + 2 * kv_heads; }
  /// Consecutive elements of a head in every operand: half a head where halves are paired.
  std::int64_t run() const { return half ? dim / 2 : dim; }
  std::int64_t pages() const { return page > 0 ? ceil_div(capacity, page) : 0; }

  DType in, cache;
  std::int64_t batch, rows, heads, kv_heads, dim, table_rows, capacity, page;
  bool norm, half, in_place;
  float epsilon;
  std::int64_t q_stride, kv_stride;
  Strides strides;
};

/// A row of Q is one head, or one token if the tokens are strided; the same for K and V.
std::vector<TensorSpec> tensors(const Problem& problem) {
  const RopeAppendShape s(problem);
  const auto heads = [&](const char* name, Role role, std::int64_t count, std::int64_t stride) {
    if (stride > 0) return TensorSpec{name, role, s.in, s.rows, count * s.dim, stride};
    return TensorSpec{name, role, s.in, s.rows * count, s.dim};
  };
  std::vector<TensorSpec> list{
      heads("Q", s.in_place ? Role::input_output : Role::input, s.heads, s.q_stride),
      heads("K", Role::input, s.kv_heads, s.kv_stride),
      heads("V", Role::input, s.kv_heads, s.kv_stride)};
  if (s.norm) {
    for (const char* weight : {"q_weight", "k_weight"}) {
      list.push_back({weight, Role::input, s.in, 1, s.dim});
    }
  }
  list.push_back({"positions", Role::input, DType::i32, 1, s.rows});
  list.push_back({"table", Role::input, DType::f32, s.table_rows, s.dim, 0, true});
  list.push_back({"slots", Role::input, DType::i32, 1, s.batch});
  if (s.page > 0) list.push_back({"block_table", Role::input, DType::i32, s.batch, s.pages()});
  const std::int64_t lines = s.batch * s.kv_heads * (s.page > 0 ? s.pages() * s.page : s.capacity);
  for (const char* cache : {"K_cache", "V_cache"}) {
    list.push_back({cache, Role::input_output, s.cache, lines, s.dim, 0, false, s.page > 0});
  }
  if (!s.in_place) list.push_back(heads("out", Role::output, s.heads, 0));
  return list;
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.name == "block_table") return random_block_table(spec, seed);
  if (spec.name == "positions") return random_indices(spec, problem.dim("positions") - 1, seed);
  if (spec.name != "slots") return random_tensor(spec, seed);
  return random_indices(spec, problem.dim("capacity") - problem.dim("tokens"), seed);
}

/// Sets slots such that some or all tokens have none, below the first or beyond the last. The
/// squares of normalised elements stay within f32.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  const bool norm = problem.attribute("norm", "none") == "rms";
  const auto tokens = problem.dim("tokens"), capacity = problem.dim("capacity");
  constexpr std::int64_t farthest = 2147483647;
  const std::int64_t slots[] = {capacity - tokens, capacity - (tokens + 1) / 2,
                                capacity - 1,      capacity,
                                farthest,          -(tokens / 2),
                                -tokens,           -1,
                                -farthest - 1};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    HostTensor& t = inputs[i];
    const std::string& name = t.spec.name;
    if (name == "positions") mix_in_invalid_indices(t, problem.dim("positions"), seed);
    for (std::size_t b = 0; name == "slots" && b < t.spec.elements(); ++b) {
      // Half of the draws leave a slot unchanged.
      const std::uint64_t draw = mix64(seed + b) % (2 * std::size(slots));
      if (draw >= std::size(slots)) continue;
      store_element(DType::i32, t.data.data(), b, static_cast<double>(slots[draw]));
    }
    if (t.spec.dtype == DType::i32 || name == "table") continue;
    Magnitudes range = magnitudes_of(t.spec.dtype);
    const bool weight = name.ends_with("_weight");
    if (weight) range = {std::max(range.least, 0x1p-40), std::min(range.most, 0x1p40)};
    if (norm && (name == "Q" || name == "K")) {
      const double most = 0x1p59 / std::sqrt(static_cast<double>(problem.dim("dim")));
      range.most = std::min(range.most, most);
    }
    mix_in_adversarial_rows(t, range, mix64(seed + i));
  }
}

Result<void> check(const Problem& problem) {
  if (const auto pairs = check_pairs(problem); !pairs) return pairs;
  const std::string epsilon = problem.attribute("epsilon", "1e-05");
  if (problem.attribute("norm", "none") == "none" && epsilon != "1e-05") {
    return bad_field("epsilon", epsilon, "needs norm=rms");
  }
  if (auto good = check_capacity(problem); !good) return good;
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const double rows =
      static_cast<double>(problem.dim("batch")) * static_cast<double>(problem.dim("tokens"));
  const auto all = static_cast<double>(problem.dim("heads") + 2 * problem.dim("kv_heads"));
  if (rows * all > static_cast<double>(most)) {
    return bad_field("heads", std::to_string(problem.dim("heads")),
                     fmt::format("batch x tokens x (heads + 2 kv_heads) must not exceed {}", most));
  }
  return check_count(problem, "capacity", {"batch", "capacity", "kv_heads"});
}

/// Q, K and V are read and written once, and one row of the table is read per token, at most all
/// rows. 3 operations per rotated element, 4 more with a norm.
Work work(const Problem& problem) {
  const RopeAppendShape s(problem);
  const auto rows = static_cast<double>(s.rows), dim = static_cast<double>(s.dim);
  const double queries = rows * static_cast<double>(s.heads) * dim;
  const double keys = rows * static_cast<double>(s.kv_heads) * dim;
  const auto angles = static_cast<double>(std::min(s.rows, s.table_rows)) * dim;
  return {(s.norm ? 7 : 3) * (queries + keys),
          2 * bytes_of(s.in, queries) + 2 * bytes_of(s.in, keys) + 2 * bytes_of(s.cache, keys) +
              bytes_of(DType::f32, angles) + bytes_of(DType::i32, rows)};
}

/// Returns the vectors of a head that a thread has in each run.
auto chunks(const RopeAppendShape& s, const auto& lanes, const auto& vec) {
  return ceil_div(s.run(), lanes * vec);
}

std::int64_t teams(const RopeAppendShape& s, const Config& c) {
  return s.rows * ceil_div(s.all_heads(), c["ITEMS"]);
}

std::int64_t workgroups(const RopeAppendShape& s, const Config& c) {
  return ceil_div(teams(s, c), c["THREADS"] / c["LANES"]);
}

Alternative space(const RopeAppendShape& s, const DeviceInfo& device) {
  // LANES  threads of a head
  // VEC    elements per load
  // ITEMS  heads of a token that a thread has
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t run = s.run(), all = s.all_heads();
  const std::int64_t most = vectorising_cpu(device) ? most_of_head : most_of_thread;
  const Expression of_head = chunks(s, p["LANES"], p["VEC"]) * p["VEC"] * (s.half ? 2 : 1);
  Alternative a{"heads",
                {{"THREADS", {64, 128, 256, 512, 1024}},
                 {"LANES", {1, 2, 4, 8, 16, 32}},
                 {"VEC", vector_widths(s.in)},
                 {"ITEMS", {1, 2, 4, 8}}},
                {storage_constraint(s.in, s.cache, device)}};
  append(
      a.constraints,
      {{"workgroup_threads", fmt::format("the device allows {} threads", threads),
        p["THREADS"] <= threads},
       {"alignment",
        fmt::format("VEC must divide {}, which is {}", s.half ? "dim / 2" : "dim", run),
        run % p["VEC"] == 0},
       {"pairs", "VEC must be at least 2 where pairs are neighbours", p["VEC"] >= (s.half ? 1 : 2)},
       {"idle_threads", fmt::format("LANES vectors of VEC must not be twice {} or more", run),
        p["LANES"] * p["VEC"] < 2 * next_power(run)},
       {"items", fmt::format("ITEMS must not exceed heads + 2 kv_heads, {}", all),
        p["ITEMS"] <= all},
       {"held",
        fmt::format("a thread must hold at most {} elements of a head and {} in all", most_of_head,
                    most),
        of_head <= most_of_head && of_head * p["ITEMS"] <= most},
       {"grid",
        fmt::format("the heads are more than {} workgroups", groups),
        {{"THREADS", "LANES", "ITEMS"},
         [s, groups](const Config& c) { return workgroups(s, c) <= groups; }}}});
  append(a.constraints, stride_constraints(s.strides));
  return a;
}

/// Prefers the widest loads, and then several heads for each thread if there are enough workgroups
/// to occupy the device, else small workgroups. Heads that are normalised stay in registers with
/// their weights, so they are fewer.
std::vector<Config> defaults(const RopeAppendShape& s, const DeviceInfo& device) {
  const std::int64_t step = common_step(s.strides, s.run());
  const int vec = widest_vector(s.in, step, step);
  const int lanes = static_cast<int>(std::min<std::int64_t>(32, next_power(s.run() / vec)));
  const auto config = [&](int threads, int items) {
    return Config{"heads",
                  {{"THREADS", threads}, {"LANES", lanes}, {"VEC", vec}, {"ITEMS", items}}};
  };
  std::vector<Config> configs;
  if (vectorising_cpu(device)) configs.push_back(config(512, 1));
  for (const auto& [threads, items] : {std::pair{256, 4}, {256, 2}, {256, 1}, {128, 1}}) {
    const Config next = config(threads, items);
    const bool busy = workgroups(s, next) >= busy_workgroups(device);
    if (busy && !(s.norm && items > 2)) configs.push_back(next);
  }
  configs.push_back(config(64, 1));
  return configs;
}

LaunchPlan plan(const RopeAppendShape& s, const DeviceInfo& device, const Config& config) {
  Defines defines = type_defines({{"IN", s.in}, {"OUT", s.cache}});
  add_parameters(defines, config);
  add_pack(defines, device, "X", s.in, config["VEC"]);
  const auto add = [&defines](const char* name, std::int64_t value) {
    defines.emplace_back(name, std::to_string(value));
  };
  const int subgroup = s.norm ? whole_subgroups(device, config["THREADS"]) : 0;
  if (device.language == Language::glsl) {
    add("F16_ARITHMETIC", device.f16_arithmetic ? 1 : 0);
    add("SUBGROUP", subgroup);
  }
  add("CHUNKS", chunks(s, config["LANES"], config["VEC"]));
  add("NORM", s.norm ? 1 : 0);
  add("HALF", s.half ? 1 : 0);
  add("PAGE", s.page);
  add("Q_STRIDE", s.q_stride);
  add("KV_STRIDE", s.kv_stride);
  add("OUT_STRIDE", s.in_place ? s.q_stride : 0);
  std::vector<Argument> arguments;
  const std::size_t operands = 8U + (s.norm ? 2U : 0U) + (s.page > 0 ? 1U : 0U);
  for (std::size_t i = 0; i < operands; ++i) arguments.emplace_back(OperandArgument{i});
  arguments.emplace_back(OperandArgument{s.in_place ? 0 : operands});
  for (const std::int64_t extent :
       {s.rows, s.rows / s.batch, s.heads, s.kv_heads, s.dim, s.table_rows, s.capacity}) {
    arguments.emplace_back(static_cast<std::uint32_t>(extent));
  }
  if (s.norm) arguments.emplace_back(s.epsilon);
  LaunchPlan plan;
  plan.sources.push_back(
      kernel_source(device, "rope_append/heads", defines, config["THREADS"], arguments));
  if (device.language == Language::glsl) {
    plan.sources[0].required_subgroup_size = static_cast<std::uint32_t>(subgroup);
  }
  const auto groups = static_cast<std::uint64_t>(workgroups(s, config));
  plan.launches.push_back({0, grid(device, plan.sources[0], groups), arguments});
  return plan;
}

std::vector<Division> divisions(const RopeAppendShape& s, const Config& c) {
  return {{"heads", s.all_heads(), c["ITEMS"], "ITEMS", never},
          {"teams", teams(s, c), c["THREADS"] / c["LANES"]},
          {"vectors of a head", s.run() / c["VEC"], c["LANES"], "LANES", 3}};
}

KernelWork work_of(const RopeAppendShape& s, const DeviceInfo&, const Config& config) {
  const double threads = config["THREADS"];
  const auto held = static_cast<double>(chunks(s, config["LANES"], config["VEC"]) * config["VEC"] *
                                        (s.half ? 2 : 1));
  const double elements = threads * held * config["ITEMS"];
  LaunchWork work;
  work.threads = threads;
  work.workgroups = static_cast<double>(workgroups(s, config));
  work.registers = 32 + 2 * held * (config["ITEMS"] + 1);
  work.read_bytes = work.ahead_bytes = bytes_of(s.in, elements);
  work.written_bytes = bytes_of(s.cache, elements);
  work.loads = elements / config["VEC"];
  work.vector_flops = (s.norm ? 12 : 8) * elements;
  work.steps = 2;  // the page that the slot is on
  work.unique_bytes = work.workgroups * (work.read_bytes + work.written_bytes);
  return {work};
}

}  // namespace

Operation make_rope_append() {
  Operation t;
  t.name = "rope_append";
  t.summary =
      "rotary position embedding of queries and keys, and the append of keys and values to their "
      "caches, after an optional norm of each head";
  t.bound =
      "of the rotated: two roundings of 2^-24 of |a cos| + |b sin|, with a norm also the error of "
      "rmsnorm of a and b, and the output's rounding; values as in kv_update";
  t.out_of_range =
      "Q and K of a token whose position is below 0, or not below positions, become NaN; token i "
      "of a sequence goes to slot slots + i, and is not appended if that is below 0, or not below "
      "capacity";
  t.dimensions = {{.name = "batch",
                   .help = "sequences",
                   .fallback = "1",
                   .examples = {1, 2, 3},
                   .at_run_time = RunTimeExtent{}},
                  run_time_tokens("tokens of each sequence to append"),
                  {.name = "heads", .help = "query heads of a token", .examples = {1, 2, 4, 6}},
                  {.name = "kv_heads",
                   .help = "KV heads of a token",
                   .fallback = "heads",
                   .examples = {1, 2, 3}},
                  {.name = "dim",
                   .help = "elements of a head, even",
                   .least = 2,
                   .most = 1024,
                   .examples = {2, 6, 64, 80, 128, 40}},
                  {.name = "positions",
                   .help = "positions that the table has",
                   .fallback = "4096",
                   .examples = {1, 7, 300}},
                  {.name = "capacity",
                   .help = "KV capacity: number of tokens of a sequence that the caches hold",
                   .examples = {160, 168, 200}}};
  t.attributes = {
      {.name = "norm",
       .help = "rms: heads of Q and K are normalised, as by rmsnorm, and then rotated",
       .fallback = "none",
       .allowed = {"none", "rms"}},
      rows::epsilon_attribute(),
      {.name = "style",
       .help = "elements of a pair: 2i and 2i + 1, or i and i + dim / 2",
       .fallback = "interleaved",
       .allowed = {"interleaved", "half"}},
      {.name = "place",
       .help = "out: the rotated queries are an output; in: they replace Q",
       .fallback = "out",
       .allowed = {"out", "in"}},
      stride_attribute("q_stride", "elements from one token of Q to the next", "heads x dim",
                       packed_queries),
      stride_attribute("kv_stride", "elements from one token to the next, of K and of V",
                       "kv_heads x dim", packed_keys),
      page_size_attribute()};
  for (const DType type : narrow_types()) t.dtypes.push_back({type, type});
  t.dtypes.push_back({DType::f32, DType::f32});
  for (const DType type : narrow_types()) t.dtypes.push_back({DType::f32, type});
  const std::vector<std::pair<std::string, std::string>> qwen{{"norm", "rms"}, {"style", "half"}};
  t.sizes = {{{1, 2048, 32, 8, 128, 8192, 8192}},
             {{1, 1, 32, 8, 128, 8192, 8192}, qwen},
             {{3, 100, 6, 2, 80, 4096, 200}},
             {{2, 7, 3, 1, 6, 100, 100}, {{"norm", "rms"}}}};
  t.shape = [](const Problem& problem) { return ProblemShape(RopeAppendShape(problem)); };
  t.check = check;
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.parts = parts_of_rope_append;
  t.reference = rope_append_reference;
  t.stand_in = fewer_tokens;
  t.variants = {make_variant<RopeAppendShape>(
      "heads",
      "LANES threads take the same columns of ITEMS heads of a token, whose angles they "
      "read once",
      space, plan, defaults, divisions)};
  set_work<RopeAppendShape>(t.variants.front(), work_of);
  return t;
}

}  // namespace greta::kernels
