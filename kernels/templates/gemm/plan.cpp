#include "kernels/templates/gemm/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/arrival.hpp"
#include "kernels/planning/workspace.hpp"
#include "kernels/templates/gemm/space.hpp"

namespace greta::kernels::gemm {
namespace {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

/// Returns a constant of both languages.
std::string unsigned_number(std::int64_t value) {
  return fmt::format("{}u", value);
}

}  // namespace

Defines problem_defines(const Shape& shape) {
  const auto is = [](bool yes) { return std::string(yes ? "1" : "0"); };
  Defines defines = type_defines({{"IN", shape.in}, {"OUT", shape.out}});
  const Defines own{
      {"A_ALONG_K", is(shape.a_along_k)},
      {"B_ALONG_K", is(shape.b_along_k)},
      {"HAS_BIAS", is(shape.bias)},
      {"HAS_RESIDUAL", is(shape.residual)},
      {"ACTIVATION", number(shape.activation)},
      {"GATED", is(shape.gated)},
      {"NORM", is(shape.norm)},
      {"GROUPED", number(static_cast<int>(shape.grouping))},
      {"LDA", unsigned_number(shape.lda)},
      {"LDB", unsigned_number(shape.ldb)},
      {"LDC", unsigned_number(shape.ldc)},
      {"STORE_VEC", shape.c_unit() % 4 == 0 ? "4" : "1"},
  };
  defines.insert(defines.end(), own.begin(), own.end());
  if (shape.panels) defines.emplace_back("B_PANELS", "1");
  return defines;
}

void add_packs(Defines& defines, const Shape& shape, const DeviceInfo& device,
               const Config& config) {
  for (const char* operand : {"A", "B"}) {
    add_pack(defines, device, operand, shape.in, config[fmt::format("V{}", operand)]);
  }
}

KernelSource kernel_source(const Shape& shape, const DeviceInfo& device, std::string_view name,
                           const Defines& defines, std::int64_t threads) {
  const std::string_view folder = shape.grouped() ? "grouped_gemm" : "gemm";
  return kernels::kernel_source(device, fmt::format("{}/{}", folder, name), defines, threads,
                                arguments(shape, {}, false));
}

std::vector<Argument> arguments(const Shape& shape, const Tiles& tiles, bool workspace,
                                std::uint64_t zeroed_bytes) {
  std::size_t next = 0;
  const auto operand = [&next](bool there) -> Argument {
    if (!there) return std::uint64_t{0};
    return OperandArgument{next++};
  };
  std::vector<Argument> list;
  for (const bool there : {true, true, shape.norm, shape.bias, shape.residual}) {
    list.push_back(operand(there));
  }
  const Argument group_rows = operand(shape.grouped());
  list.push_back(operand(true));
  for (const std::uint64_t offset : {zeroed_bytes, std::uint64_t{0}}) {
    list.push_back(workspace ? Argument{WorkspaceArgument{offset}} : Argument{std::uint64_t{0}});
  }
  for (const std::int64_t value : {shape.m, shape.n, shape.k, static_cast<std::int64_t>(tiles.m),
                                   static_cast<std::int64_t>(tiles.n), tiles.slice}) {
    list.emplace_back(static_cast<std::uint32_t>(value));
  }
  list.emplace_back(shape.alpha);
  list.emplace_back(shape.beta);
  list.emplace_back(shape.epsilon);
  if (shape.grouping == Grouping::batch) {
    for (const std::int64_t step : {shape.a_step, shape.b_step, shape.c_step}) {
      list.emplace_back(static_cast<std::uint64_t>(step));
    }
  }
  if (shape.grouped()) {
    list.push_back(group_rows);
    list.emplace_back(static_cast<std::uint32_t>(shape.groups));
  }
  return list;
}

std::uint64_t partial_bytes(const Shape& shape, int split) {
  return static_cast<std::uint64_t>(split) * static_cast<std::uint64_t>(shape.m) *
         static_cast<std::uint64_t>(shape.products()) * 4;
}

namespace {

/// Returns a plan of one launch that also adds the slices.
LaunchPlan folded_plan(const Shape& shape, const DeviceInfo& device, const Config& config,
                       KernelSource source) {
  const int split = config["SPLIT"];
  const auto whole_clusters = [&](std::int64_t tiles, const char* cluster) {
    const std::int64_t side = config.has(cluster) ? config[cluster] : 1;
    return static_cast<std::uint64_t>(round_up(tiles, side));
  };
  Tiles tiles;
  tiles.m = whole_clusters(ceil_div(shape.m, config["BM"]), "CLUSTER_M");
  tiles.n = whole_clusters(ceil_div(shape.products(), config["BN"]), "CLUSTER_N");
  tiles.slice = slice_length(shape, split, config["BK"]);
  LaunchPlan plan;
  const bool by_the_last = config["FOLD"] == 1;  // the last slice adds all partial sums from memory
  if (by_the_last) {
    plan.zeroed_bytes = counter_bytes(tiles.m * tiles.n);
    plan.workspace_bytes = plan.zeroed_bytes + partial_bytes(shape, split);
  }
  plan.sources.push_back(std::move(source));
  plan.launches.push_back({0, grid(device, plan.sources[0], tiles.m * tiles.n, split),
                           arguments(shape, tiles, by_the_last, plan.zeroed_bytes)});
  return plan;
}

}  // namespace

LaunchPlan plan_of_tiles(const Shape& shape, const DeviceInfo& device, const Config& config,
                         KernelSource kernel) {
  if (config.has("FOLD") && config["FOLD"] != 0) {
    return folded_plan(shape, device, config, std::move(kernel));
  }
  const int split = config.has("SPLIT") ? config["SPLIT"] : 1;
  Tiles tiles;
  tiles.m = static_cast<std::uint64_t>(launched_lines(shape, std::int64_t{config["BM"]}));
  tiles.n = static_cast<std::uint64_t>(ceil_div(shape.products(), config["BN"]));
  tiles.slice = slice_length(shape, split, config["BK"]);
  LaunchPlan plan;
  plan.sources.push_back(std::move(kernel));
  plan.launches.push_back({0, grid(device, plan.sources[0], tiles.m * tiles.n, split),
                           arguments(shape, tiles, split > 1)});
  if (split == 1) return plan;

  plan.workspace_bytes = partial_bytes(shape, split);
  Defines defines = problem_defines(shape);
  defines.emplace_back("SPLIT", number(split));
  plan.sources.push_back(kernel_source(shape, device, "reduce", defines, 256));
  // A thread reduces a unit (operands.hip), or of Vulkan four sums.
  const bool fours = device.language == Language::glsl || shape.c_unit() % 4 == 0;
  const std::int64_t units = shape.m * ceil_div(shape.products(), fours ? 4 : shape.gated ? 2 : 1);
  plan.launches.push_back(
      {1, grid(device, plan.sources[1], static_cast<std::uint64_t>(ceil_div(units, 256))),
       arguments(shape, {}, true)});
  return plan;
}

void add_copies(LaunchPlan& plan, const Shape& shape, const DeviceInfo& device,
                const CopiedOperands& copies) {
  constexpr std::size_t a = 0, b = 1, partial = 6;  // indices into the argument block
  const auto of_a = static_cast<std::uint64_t>(copies.a_bytes);
  const auto of_b = static_cast<std::uint64_t>(copies.b_bytes);
  const std::uint64_t offset = workspace_part(plan.workspace_bytes);
  plan.workspace_bytes = offset + of_a + of_b;
  Launch& product = plan.launches.front();
  Launch copy{plan.sources.size(), {}, product.arguments};
  copy.arguments[partial] = WorkspaceArgument{offset};
  if (of_a > 0) product.arguments[a] = WorkspaceArgument{offset};
  if (of_b > 0) product.arguments[b] = WorkspaceArgument{offset + of_a};
  plan.sources.push_back(kernel_source(shape, device, copies.kernel, copies.defines, 256));
  copy.grid = grid(device, plan.sources.back(), static_cast<std::uint64_t>(copies.workgroups),
                   of_a > 0 && of_b > 0 ? 2 : 1);
  plan.launches.insert(plan.launches.begin(), std::move(copy));
}

std::vector<Division> divisions_of_tiles(const Shape& shape, const Config& c) {
  // With split_k, every slice is at least one whole step or empty.
  const bool whole_steps = c.variant == "split_k";
  const bool along_n = c.has("WALK") && c["WALK"] == 1;
  const auto side = [&](const char* tile, const char* cluster) {
    return std::int64_t{c[tile]} * (c.has(cluster) ? c[cluster] : 1);
  };
  // Of tiles, or of clusters of tiles.
  const std::int64_t lines = along_n ? ceil_div(shape.products(), side("BN", "CLUSTER_N"))
                                     : launched_lines(shape, side("BM", "CLUSTER_M"));
  std::vector<Division> list{{"m", shape.m, c["BM"], "BM"},
                             {"n", shape.n, c["BN"], "BN"},
                             {"k", shape.k, c["BK"], "BK", whole_steps ? never : 1},
                             {"lines of tiles", lines, c["SWIZZLE"], "SWIZZLE"}};
  if (shape.gated) list[1] = {"n of gates and ups", shape.n, c["BN"] / 2, ""};
  if (c.has("SPLIT")) list.push_back({"slices", ceil_div(shape.k, c["BK"]), c["SPLIT"], "", never});
  if (c.has("FOLD") && c.variant != "tiled") {  // slices of a cluster add up shares of rows
    const bool shared = c["FOLD"] == 2;
    list.push_back({"rows of slices", shared ? c["BM"] : 0, shared ? c["SPLIT"] : 1, "", never});
  }
  return list;
}

std::vector<Division> divisions_of_stages(const Shape& shape, const Config& c) {
  std::vector<Division> list = divisions_of_tiles(shape, c);
  const std::int64_t steps = ceil_div(shape.k, std::int64_t{c["BK"]} * c["SPLIT"]);
  list.push_back({"K steps", steps, c["STAGES"], "STAGES"});
  return list;
}

}  // namespace greta::kernels::gemm
