#include "kernels/templates/attention/shape.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "kernels/planning/head_sizes.hpp"
#include "kernels/planning/pages.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/attention/options.hpp"

namespace greta::kernels::attention {

Shape shape_of(const Problem& problem) {
  Shape shape{};
  shape.in = problem.dtype;
  shape.out = problem.out_dtype;
  shape.batch = problem.dim("batch");
  shape.heads = problem.dim("heads");
  shape.kv_heads = problem.dim("kv_heads");
  shape.queries = problem.dim("q");
  shape.capacity = problem.dim("kv");
  shape.dim = problem.dim("dim");
  shape.v_dim = v_dim_of(problem);
  shape.q_stride = problem.stride("q_stride", shape.heads * shape.dim);
  shape.causal = problem.attribute("mask", "none") == "causal";
  const std::string scale = problem.attribute("scale", "auto");
  shape.scale = scale == "auto" ? 1 / std::sqrt(static_cast<double>(shape.dim))
                                : std::strtof(scale.c_str(), nullptr);
  shape.window = window_of(problem);
  shape.softcap = softcap_of(problem);
  shape.sinks = problem.attribute("sinks", "none") != "none";
  shape.lse = problem.attribute("lse", "none") != "none";
  shape.page = page_of(problem);
  shape.packed = packs_sequences(problem);
  shape.ragged = problem.attribute("lengths", "full") == "ragged";
  return shape;
}

std::vector<Division> window_divisions(const Shape& shape) {
  if (shape.window == 0) return {};
  return {{"keys of the first query", shape.capacity - shape.queries + 1, shape.window}};
}

Shape of_mean_lengths(Shape shape) {
  if (!shape.packed) return shape;
  shape.packed = false;
  shape.packed_queries = shape.queries;
  shape.queries = ceil_div(shape.queries, shape.batch);
  shape.capacity = ceil_div(shape.capacity, shape.batch);
  return shape;
}

Defines problem_defines(const Shape& shape) {
  Defines defines = type_defines({{"IN", shape.in}, {"OUT", shape.out}});
  defines.emplace_back("DIM", std::to_string(shape.dim));
  defines.emplace_back("V_DIM", std::to_string(shape.v_dim));
  defines.emplace_back("Q_STRIDE", std::to_string(shape.q_stride));
  defines.emplace_back("CAUSAL", shape.causal ? "1" : "0");
  defines.emplace_back("WINDOW", shape.window > 0 ? "1" : "0");
  defines.emplace_back("SOFTCAP", shape.softcap > 0 ? "1" : "0");
  defines.emplace_back("SINKS", shape.sinks ? "1" : "0");
  defines.emplace_back("LSE", shape.lse ? "1" : "0");
  defines.emplace_back("PAGE", std::to_string(shape.page));
  defines.emplace_back("PACKED", shape.packed ? "1" : "0");
  return defines;
}

std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles, bool workspace,
                                std::uint64_t counter_bytes) {
  std::vector<Argument> list;
  // Tensors are Q, K, V, lengths or starts of queries and keys, the output, and those of options.
  const std::size_t tensors = 5U + (shape.page > 0 || shape.packed ? 1U : 0U) +
                              (shape.sinks ? 1U : 0U) + (shape.lse ? 1U : 0U);
  for (std::size_t i = 0; i < tensors; ++i) list.emplace_back(OperandArgument{i});
  for (const std::uint64_t offset : {counter_bytes, std::uint64_t{0}}) {
    list.push_back(workspace ? Argument{WorkspaceArgument{offset}} : Argument{std::uint64_t{0}});
  }
  for (const std::int64_t value :
       {shape.batch, shape.heads, shape.kv_heads, shape.queries, shape.capacity, tiles}) {
    list.emplace_back(static_cast<std::uint32_t>(value));
  }
  constexpr double log2_e = 1.4426950408889634;  // kernels compute 2^x
  list.emplace_back(static_cast<float>(shape.scale * log2_e));
  if (shape.window > 0) list.emplace_back(static_cast<std::uint32_t>(shape.window));
  if (shape.softcap > 0) list.emplace_back(static_cast<float>(shape.softcap * log2_e));
  return list;
}

void roomy_first(std::vector<Config>& configs, const DeviceInfo& device,
                 const std::function<std::int64_t(const Config&)>& registers) {
  // Vulkan drivers hoist more loads.
  const std::int64_t room = device.language == Language::glsl ? 128 : 192;
  for (const std::int64_t most : {std::int64_t{255}, room * 5 / 4, room}) {
    std::stable_partition(configs.begin(), configs.end(),
                          [&](const Config& config) { return registers(config) <= most; });
  }
}

}  // namespace greta::kernels::attention
