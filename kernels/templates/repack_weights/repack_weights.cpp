#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "kernels/model/adversarial.hpp"
#include "kernels/model/random.hpp"
#include "kernels/model/weight_packing.hpp"
#include "kernels/model/weight_panels.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

namespace greta::kernels {
namespace repack_weights {
namespace {

constexpr std::int64_t least_n = 32, least_k = 64;  ///< tiles of any problem
constexpr std::int64_t least_threads = 64;          ///< workgroups of any problem
constexpr std::int64_t at_a_time = 4;               ///< scales and zero points of a thread

struct Shape {
  PackedMatrix matrix;
  DType in = DType::f16, out = DType::f16;  ///< of scales
  bool zeros = false;                       ///< whether there are zero points
  bool ordered = false;                     ///< whether weights of a row change places
  bool panels = false;                      ///< whether B has panels of rows
  DType integers = DType::u8;               ///< of B; with rows of numbers their type

  /// Returns whether there are no scales, as those of rows stay as they are.
  bool from_rows() const { return matrix.in_rows(); }
  /// Returns the words of all rows after repacking, of which a row has a multiple of 4.
  std::int64_t row_words() const { return matrix.row_bytes() / 4; }
  std::int64_t scales() const { return matrix.n * matrix.groups(); }
};

Shape shape_of(const Problem& problem) {
  const std::string weights = problem.attribute("weights", "int4");
  return {packed_matrix_of(problem),
          problem.dtype,
          problem.out_dtype,
          problem.attribute("zeros", "none") == "groups",
          problem.attribute("order", "stored") == "given",
          problem.attribute("to", "rows") == "panels",
          weights == "f16"    ? DType::f16
          : weights == "bf16" ? DType::bf16
                              : DType::u8};
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const Shape s = shape_of(problem);
  const PackedMatrix& m = s.matrix;
  const auto matrix = [](const char* name, Role role, DType type, std::int64_t rows,
                         std::int64_t cols, std::int64_t alignment) {
    TensorSpec spec{name, role, type, rows, cols};
    spec.alignment = alignment;
    return spec;
  };
  if (s.from_rows()) {
    const std::int64_t cols = s.integers == DType::u8 ? m.row_bytes() : m.k;
    return {matrix("qweight", Role::input, s.integers, m.n, cols, 16),
            matrix("B", Role::output, s.integers, m.n, cols, 16)};
  }
  std::vector<TensorSpec> list{
      matrix("qweight", Role::input, DType::i32, m.weight_rows(), m.weight_cols(), 16),
      matrix("qscales", Role::input, s.in, m.groups(), m.n, 0)};
  if (s.zeros) {
    list.push_back(matrix("qzeros", Role::input, DType::i32, m.groups(), m.zero_cols(), 0));
  }
  if (s.ordered) list.push_back(matrix("order", Role::input, DType::i32, 1, m.k, 0));
  list.push_back(matrix("B", Role::output, DType::u8, m.n, m.row_bytes(), 16));
  list.push_back(matrix("scales", Role::output, s.out, m.n, m.groups(), 8));
  if (s.zeros) list.push_back(matrix("zeros", Role::output, DType::u8, m.n, m.groups(), 4));
  return list;
}

/// No arithmetic with numbers.
Work work(const Problem& problem) {
  return {0, operand_bytes(tensors(problem))};
}

/// Panels are whole, and so are units of their rows.
Result<void> check_panels(const PackedMatrix& m) {
  if (m.n % panel_rows != 0) {
    return bad_field("n", std::to_string(m.n), "must be a multiple of 16, the rows of a panel");
  }
  if (m.row_bytes() % panel_unit_bytes == 0) return {};
  return bad_field("k", std::to_string(m.k),
                   fmt::format("rows must be multiples of 16 bytes in panels: k a multiple of {}",
                               panel_unit_bytes * 8 / m.bits));
}

/// Rows become panels as they are, whatever their weights.
Result<void> check_rows(const Problem& problem, const Shape& s) {
  if (!s.panels) {
    return bad_field("to", "rows", "packing=rows needs to=panels");
  }
  for (const auto& [field, usual] :
       {std::pair{"group", "128"}, std::pair{"zeros", "none"}, std::pair{"order", "stored"}}) {
    const std::string value = problem.attribute(field, usual);
    if (value != usual) {
      return bad_field(field, value,
                       "not with packing=rows, whose scales, zero points and order stay");
    }
  }
  return check_panels(s.matrix);
}

Result<void> check(const Problem& problem) {
  const Shape s = shape_of(problem);
  const PackedMatrix& m = s.matrix;
  if (s.from_rows()) return check_rows(problem, s);
  const std::string weights = problem.attribute("weights", "int4");
  if (weights != "int4" && weights != "int8") {
    return bad_field("weights", weights, "needs packing=rows; others have int4 and int8");
  }
  if (m.along_n() && m.bits != 4) {
    return bad_field("weights", "int8", "packing=awq has 4 bits; gptq and gptq_v2 have 8 as well");
  }
  if (m.n % packed_rows != 0) {
    return bad_field("n", std::to_string(m.n), "must be a multiple of 8, the rows of a word");
  }
  if (m.k % m.group != 0) {
    return bad_field(
        "k", std::to_string(m.k),
        fmt::format("must be a multiple of {}, so that rows are whole groups", m.group));
  }
  if (s.panels) {
    if (auto good = check_panels(m); !good) return good;
  }
  constexpr std::int64_t most = 2147483647;
  if (m.n <= most / m.groups()) return {};
  return bad_field("n", std::to_string(m.n), fmt::format("n x k / group must not exceed {}", most));
}

/// Any bits; scales as numbers; all weights in another order.
HostTensor input(const Problem&, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.dtype != DType::i32 && spec.dtype != DType::u8) return random_tensor(spec, seed);
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  std::mt19937_64 random(mix64(seed));
  if (spec.name != "order") {
    for (std::byte& byte : tensor.data) byte = static_cast<std::byte>(random() >> 56);
    return tensor;
  }
  std::vector<std::int32_t> order(spec.elements());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[uniform_below(random, i)]);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    store_element(spec.dtype, tensor.data.data(), i, order[i]);
  }
  return tensor;
}

/// Words with all bits clear or set, scales across their range, and weights that there aren't.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  std::mt19937_64 random(mix64(seed));
  for (HostTensor& tensor : inputs) {
    if (tensor.spec.dtype != DType::i32 && tensor.spec.name == "qweight") continue;  // any bits
    if (tensor.spec.name == "qscales") {
      mix_in_adversarial_rows(tensor, magnitudes_of(problem.out_dtype), seed);
    } else if (tensor.spec.name == "order") {
      mix_in_invalid_indices(tensor, problem.dim("k"), seed);
    } else {
      for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
        const std::uint64_t kind = uniform_below(random, 8);
        if (kind < 2) store_element(DType::i32, tensor.data.data(), i, kind == 0 ? 0 : -1);
      }
    }
  }
}

std::int64_t tiles_of(const Shape& s, const Config& c) {
  return ceil_div(s.matrix.n, c["TILE_N"]) * ceil_div(s.matrix.k, c["TILE_K"]);
}

std::int64_t workgroups_of_groups(const Shape& s, const Config& c) {
  return s.from_rows() ? 0 : ceil_div(s.scales() / at_a_time, c["THREADS"]);
}

/// Returns the words of a row of a tile, of its loads across rows, and of its shared memory.
auto row_words(const Shape& s, const auto& c) {
  return c["TILE_K"] / static_cast<int>(s.matrix.of_word());
}
auto loads_of(const Shape& s, const auto& c) {
  const int rows = s.matrix.along_n() ? static_cast<int>(s.matrix.of_word()) : 1;
  return c["TILE_N"] / rows * row_words(s, c) / c["VEC"];
}
auto shared_bytes(const Shape& s, const auto& c) {
  return (c["TILE_N"] * (row_words(s, c) + 1) + c["TILE_N"] / 8) * 4;
}

/// Parameters: THREADS, the workgroup size; TILE_N x TILE_K, the weights that a workgroup
/// transposes in shared memory; VEC, words of a load; STORE, words of a store.
Alternative space(const Shape& s, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const std::int64_t shared = std::min<std::int64_t>(device.shared_memory_bytes, 48 << 10);
  const std::int64_t n = s.matrix.n, k = s.matrix.k, columns = s.matrix.weight_cols();
  return {"tiles",
          {{"THREADS", {64, 128, 256, 512}},
           {"TILE_N", {32, 64, 128, 256}},
           {"TILE_K", {64, 128, 256, 512}},
           {"VEC", {1, 2, 4}},
           {"STORE", {1, 2, 4}}},
          {storage_constraint(s.in, s.out, device),
           {"workgroup_threads", fmt::format("the device allows {} threads", threads),
            p["THREADS"] <= threads},
           {"alignment", fmt::format("VEC must divide the words of a line of qweight, {}", columns),
            columns % p["VEC"] == 0},
           {"tile",
            fmt::format("TILE_N and TILE_K must not exceed the next powers of 2 after n, {}, and "
                        "after k, {}; {} and {} are always allowed",
                        n, k, least_n, least_k),
            p["TILE_N"] <= std::max(next_power(n), least_n) &&
                p["TILE_K"] <= std::max(next_power(k), least_k)},
           {"shared_memory", fmt::format("a tile must fit {} KiB", shared / 1024),
            shared_bytes(s, p) <= shared},
           {"idle_threads",
            fmt::format("a tile must have a load and a store for each thread; {} threads may idle",
                        least_threads),
            p["THREADS"] <= least_threads ||
                (p["THREADS"] <= loads_of(s, p) &&
                 p["THREADS"] * p["STORE"] <= p["TILE_N"] * row_words(s, p))},
           {"loads", "a thread must have at most 64 words of a tile",
            p["TILE_N"] * row_words(s, p) <= 64 * p["THREADS"]},
           {"grid",
            fmt::format("the tiles and groups are more than {} workgroups", groups),
            {{"THREADS", "TILE_N", "TILE_K"}, [s, groups](const Config& c) {
               return tiles_of(s, c) + workgroups_of_groups(s, c) <= groups;
             }}}}};
}

/// Large tiles read and write whole lines of memory, if there are enough of them to occupy the
/// device.
std::vector<Config> defaults(const Shape& s, const DeviceInfo& device) {
  std::vector<Config> configs;
  const int load = s.from_rows() ? 4 : 1;  // along a row, or across rows
  const auto config = [load](int threads, int tile_n, int tile_k, int store) {
    return Config{"tiles",
                  {{"THREADS", threads},
                   {"TILE_N", tile_n},
                   {"TILE_K", tile_k},
                   {"VEC", load},
                   {"STORE", store}}};
  };
  const bool cpu = vectorising_cpu(device);
  for (const auto& [tile_n, tile_k] : {std::pair{128, 256}, {64, 256}, {64, 128}}) {
    const Config next = config(cpu ? 64 : 256, tile_n, tile_k, 4);
    if (tiles_of(s, next) >= busy_workgroups(device)) configs.push_back(next);
  }
  configs.push_back(config(64, 64, 128, 4));
  configs.push_back(config(64, 32, 64, 1));
  return configs;
}

LaunchPlan plan(const Shape& s, const DeviceInfo& device, const Config& config) {
  const PackedMatrix& m = s.matrix;
  Defines defines = type_defines({{"IN", s.in}, {"OUT", s.out}});
  add_parameters(defines, config);
  for (const auto& [name, value] :
       {std::pair<const char*, std::int64_t>{"AWQ", m.along_n() ? 1 : 0},
        {"FROM_ROWS", s.from_rows() ? 1 : 0},
        {"PANELS", s.panels ? 1 : 0},
        {"BITS", m.bits},
        {"GROUP", m.group},
        {"ZEROS", s.zeros ? 1 : 0},
        {"ZERO_OFFSET", m.packing == WeightPacking::gptq ? 1 : 0},
        {"ORDERED", s.ordered ? 1 : 0},
        {"FLIP", m.bits == 8 && !s.zeros && !s.from_rows() ? 1 : 0}}) {
    defines.emplace_back(name, std::to_string(value));
  }
  std::size_t next = 0;
  const auto operand = [&](bool there = true) -> Argument {
    if (!there) return std::uint64_t{0};
    return OperandArgument{next++};
  };
  const std::int64_t tiles = tiles_of(s, config);
  const bool scales = !s.from_rows();
  std::vector<Argument> arguments{operand(), operand(scales), operand(s.zeros), operand(s.ordered),
                                  operand(), operand(scales), operand(s.zeros)};
  for (const std::int64_t value : {m.n, m.k, tiles}) {
    arguments.emplace_back(static_cast<std::uint32_t>(value));
  }
  LaunchPlan plan;
  plan.sources.push_back(
      kernel_source(device, "repack_weights/tiles", defines, config["THREADS"], arguments));
  const auto blocks = static_cast<std::uint64_t>(tiles + workgroups_of_groups(s, config));
  plan.launches.push_back({0, grid(device, plan.sources[0], blocks), std::move(arguments)});
  return plan;
}

std::vector<Division> divisions(const Shape& s, const Config& c) {
  std::vector<Division> list{{"n", s.matrix.n, c["TILE_N"], "TILE_N", least_n},
                             {"k", s.matrix.k, c["TILE_K"], "TILE_K", least_k}};
  if (!s.from_rows()) list.push_back({"scales", s.scales() / at_a_time, c["THREADS"]});
  return list;
}

KernelWork kernel_work(const Shape& s, const DeviceInfo&, const Config& c) {
  const double words = static_cast<double>(c["TILE_N"] * row_words(s, c));
  const double tiles = static_cast<double>(tiles_of(s, c));
  LaunchWork work;
  work.threads = c["THREADS"];
  work.workgroups = tiles + static_cast<double>(workgroups_of_groups(s, c));
  work.shared_bytes = static_cast<double>(shared_bytes(s, c));
  const double held = words / c["THREADS"];
  work.registers = 24 + std::min(held, 32.0);
  const double share = tiles / work.workgroups;  // of tiles, among all workgroups
  work.read_bytes = work.ahead_bytes = work.written_bytes = 4 * words * share;
  work.loads = words / c["VEC"] * share;
  work.shared_traffic = 8 * words * share;
  work.barriers = 1;
  work.vector_flops = (s.matrix.along_n() || s.ordered ? 20 : 6) * words * share;
  work.unique_bytes = 2 * static_cast<double>(s.matrix.n * s.matrix.row_bytes());
  return {work};
}

std::vector<Attribute> attributes() {
  std::vector<Attribute> list{
      {.name = "packing",
       .help = "who packed the weights. awq: AutoAWQ, version gemm; gptq: AutoGPTQ, which stores "
               "one less than a zero point; gptq_v2: GPTQModel, which stores zero points; rows: "
               "weights in rows, which become panels",
       .fallback = "awq",
       .allowed = {"awq", "gptq", "gptq_v2", "rows"}},
      {.name = "weights",
       .help = "integers of B, as quantized_gemm reads them, and of qweight; int8 not of awq; "
               "mxfp4, f16 and bf16 only with packing rows",
       .fallback = "int4",
       .allowed = {"int4", "int8", "mxfp4", "f16", "bf16"}}};
  quantized_gemm::add_group_attributes(list, "k");
  list.push_back({.name = "order",
                  .help = "of the weights of a row. stored: as in qweight; given: weight i is the "
                          "stored weight order[i], e.g. those of each group together",
                  .fallback = "stored",
                  .allowed = {"stored", "given"}});
  list.push_back({.name = "to",
                  .help = "how B is stored. rows; panels: of 16 rows each, units of 16 bytes of "
                          "each row one after the other",
                  .fallback = "rows",
                  .allowed = {"rows", "panels"}});
  return list;
}

}  // namespace
}  // namespace repack_weights

Operation make_repack_weights() {
  Operation t;
  t.name = "repack_weights";
  t.summary =
      "weights that AWQ or GPTQ packed, or rows of weights, as products read them: B, scales, "
      "zeros";
  t.bound = "none; scales: none where types agree, else the output's rounding";
  t.out_of_range = "an order below 0, or not below k, gives the stored integer 0";
  t.dimensions = {{.name = "n",
                   .help = "rows of B: a multiple of 8, of panels of 16",
                   .least = packed_rows,
                   .examples = {8, 24, 32, 40, 48, 64, 72, 136, 256, 264, 272}},
                  {.name = "k",
                   .help = "weights of a row: whole groups",
                   .least = 32,
                   .examples = {128, 32, 64, 96, 256, 384, 640, 1152}}};
  t.attributes = repack_weights::attributes();
  t.dtypes = {{DType::f16, DType::f16},
              {DType::bf16, DType::bf16},
              {DType::f16, DType::bf16},
              {DType::bf16, DType::f16}};
  t.sizes = {{{4096, 4096}, {{"zeros", "groups"}}},
             {{11008, 4096}, {{"zeros", "groups"}}},
             {{4096, 11008}, {{"packing", "gptq"}}},
             {{4096, 4096}, {{"packing", "gptq"}, {"zeros", "groups"}, {"order", "given"}}},
             {{1000, 1024}, {{"packing", "gptq"}, {"weights", "int8"}}},
             {{4096, 4096}, {{"packing", "rows"}, {"to", "panels"}}},
             {{4096, 4096}, {{"packing", "rows"}, {"weights", "f16"}, {"to", "panels"}}},
             {{4096, 4096}, {{"packing", "rows"}, {"weights", "mxfp4"}, {"to", "panels"}}},
             {{4096, 4096}, {{"zeros", "groups"}, {"to", "panels"}}}};
  t.check = repack_weights::check;
  t.shape = [](const Problem& problem) { return ProblemShape(repack_weights::shape_of(problem)); };
  t.variants = {make_variant<repack_weights::Shape>(
      "tiles", "a workgroup transposes TILE_N x TILE_K weights in shared memory",
      repack_weights::space, repack_weights::plan, repack_weights::defaults,
      repack_weights::divisions)};
  set_work<repack_weights::Shape>(t.variants.front(), repack_weights::kernel_work);
  t.work = repack_weights::work;
  t.tensors = repack_weights::tensors;
  t.input = repack_weights::input;
  t.harden = repack_weights::harden;
  t.reference = repack_weights_reference;
  t.stand_in = [](const Problem& problem, double fraction) {
    return shorter(problem, "n", 256, fraction);
  };
  return t;
}

}  // namespace greta::kernels
