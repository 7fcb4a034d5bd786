#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/model/weight_panels.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/quantized_gemm/inputs.hpp"
#include "kernels/templates/quantized_gemm/plan.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

namespace greta::kernels {
namespace dequantize {
namespace {

constexpr std::int64_t chunk = 8;  ///< neighbours that a thread stores at once

/// The shape of a product with the weights: n rows of k weights.
using Shape = quantized_gemm::Shape;

/// Returns the product of a row with the weights.
Problem product_of(const Problem& problem) {
  return {"quantized_gemm",
          problem.dtype,
          problem.out_dtype,
          problem.attributes,
          {{"m", 1}, {"n", problem.dim("rows")}, {"k", problem.dim("cols")}}};
}

Shape shape_of(const Problem& problem) {
  return quantized_gemm::shape_of(product_of(problem));
}

std::int64_t chunks_of(const Shape& s) {
  return s.n * (s.k / chunk);
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const Shape s = shape_of(problem);
  std::vector<TensorSpec> list;
  quantized_gemm::add_weights(list, s, s.n);
  list.push_back({"out", Role::output, s.out, s.n, s.k});
  return list;
}

/// A difference and a product for each weight.
Work work(const Problem& problem) {
  const Shape s = shape_of(problem);
  return {2 * static_cast<double>(s.n) * static_cast<double>(s.k), operand_bytes(tensors(problem))};
}

Result<void> check(const Problem& problem) {
  const Shape s = shape_of(problem);
  const bool groups = !in_blocks(s.format) && only_group(s.format) == 0;
  for (const auto& [field, usual] : {std::pair{"group", "128"}, std::pair{"zeros", "none"}}) {
    const std::string value = problem.attribute(field, usual);
    if (!groups && value != usual) return bad_field(field, value, "only for int4 and int8");
  }
  const std::int64_t unit = in_blocks(s.format) ? block_weights(s.format) : s.group;
  if (s.k % unit != 0) {
    return bad_field("cols", std::to_string(s.k),
                     fmt::format("must be a multiple of {}, so that rows of weights are whole {}",
                                 unit, in_blocks(s.format) ? "blocks" : "groups"));
  }
  if (s.panels && s.n % panel_rows != 0) {
    return bad_field("rows", std::to_string(s.n),
                     fmt::format("must be a multiple of {} with packing panels", panel_rows));
  }
  if (auto good = quantized_gemm::check_panels(s); !good) return good;
  constexpr std::int64_t most = 2147483647;
  if (s.n <= most / (s.k / chunk)) return {};
  return bad_field("rows", std::to_string(s.n),
                   fmt::format("rows x cols / 8 must not exceed {}", most));
}

/// Those of a product, whose other operand comes first.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  const Problem product = product_of(problem);
  inputs.insert(inputs.begin(),
                random_tensor({"A", Role::input, problem.dtype, 1, problem.dim("cols")}, seed));
  quantized_gemm::harden(product, inputs, seed);
  inputs.erase(inputs.begin());
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  return quantized_gemm::input(product_of(problem), spec, seed);
}

std::int64_t workgroups(const Shape& s, const Config& c) {
  return ceil_div(chunks_of(s), std::int64_t{c["THREADS"]} * c["CHUNKS"]);
}

/// Parameters: THREADS, the workgroup size; CHUNKS, those that a thread loads before it decodes.
Alternative space(const Shape& s, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  return {"chunks",
          {{"THREADS", {64, 128, 256, 512}}, {"CHUNKS", {1, 2, 4, 8, 16}}},
          {storage_constraint(s.halves(), s.out, device),
           {"workgroup_threads", fmt::format("the device allows {} threads", threads),
            p["THREADS"] <= threads},
           {"grid", fmt::format("the weights are more than {} workgroups", groups),
            ceil_div(chunks_of(s), p["THREADS"] * p["CHUNKS"]) <= groups}}};
}

std::vector<Config> defaults(const Shape& s, const DeviceInfo& device) {
  std::vector<Config> configs;
  const auto config = [](int threads, int items) {
    return Config{"chunks", {{"THREADS", threads}, {"CHUNKS", items}}};
  };
  for (const int items : {2, 1}) {
    const Config next = config(256, items);
    const bool busy = workgroups(s, next) >= busy_workgroups(device);
    if (busy && !vectorising_cpu(device)) configs.push_back(next);
  }
  configs.push_back(config(64, 1));
  return configs;
}

LaunchPlan plan(const Shape& s, const DeviceInfo& device, const Config& config) {
  Defines defines = type_defines({{"IN", s.in}, {"OUT", s.out}});
  add_parameters(defines, config);
  const int width = static_cast<int>(16 / bytes_of(s.out, 1));  // elements of a store
  defines.emplace_back("VEC", std::to_string(width));
  add_pack(defines, device, "X", s.in, width);
  defines.emplace_back("FORMAT", std::to_string(static_cast<int>(s.format)));
  defines.emplace_back("GROUP", std::to_string(s.group));
  defines.emplace_back("ZEROS", s.zeros ? "1" : "0");
  defines.emplace_back("SCALES_BF16", s.halves() == DType::bf16 ? "1" : "0");
  if (s.panels) defines.emplace_back("PACKING", "4");
  if (device.language == Language::glsl) {
    defines.emplace_back("F16_ARITHMETIC", device.f16_arithmetic ? "1" : "0");
  }
  std::size_t next = 0;
  const auto operand = [&](bool there = true) -> Argument {
    if (!there) return std::uint64_t{0};
    return OperandArgument{next++};
  };
  std::vector<Argument> arguments{operand(),
                                  operand(s.group > 0),
                                  operand(s.zeros),
                                  operand(),
                                  static_cast<std::uint32_t>(chunks_of(s)),
                                  static_cast<std::uint32_t>(s.k)};
  LaunchPlan plan;
  plan.sources.push_back(
      kernel_source(device, "dequantize/chunks", defines, config["THREADS"], arguments));
  const auto blocks = static_cast<std::uint64_t>(workgroups(s, config));
  plan.launches.push_back({0, grid(device, plan.sources[0], blocks), std::move(arguments)});
  return plan;
}

std::vector<Division> divisions(const Shape& s, const Config& c) {
  return {{"chunks", chunks_of(s), std::int64_t{c["THREADS"]} * c["CHUNKS"]}};
}

KernelWork kernel_work(const Shape& s, const DeviceInfo&, const Config& c) {
  const double weights = static_cast<double>(chunk) * c["THREADS"] * c["CHUNKS"];
  const double stored = static_cast<double>(row_bytes(s.format, s.k)) / static_cast<double>(s.k);
  LaunchWork work;
  work.threads = c["THREADS"];
  work.workgroups = static_cast<double>(workgroups(s, c));
  work.registers = 32 + 4 * c["CHUNKS"];
  work.read_bytes = work.ahead_bytes = weights * (stored + quantized_gemm::scale_bytes(s));
  work.written_bytes = weights * bytes_of(s.out, 1.0);
  work.loads = 2.0 * c["THREADS"] * c["CHUNKS"];  // of codes, and of a scale
  work.vector_flops = 6 * weights;
  work.unique_bytes = work.workgroups * (work.read_bytes + work.written_bytes);
  return {work};
}

std::vector<Attribute> attributes() {
  std::vector<Attribute> list = quantized_gemm::weight_attributes("a row");
  list.front().help = "how B is stored, as that of quantized_gemm";
  list.push_back(quantized_gemm::panels_attribute("B has"));
  return list;
}

}  // namespace
}  // namespace dequantize

Operation make_dequantize() {
  Operation t;
  t.name = "dequantize";
  t.summary = "the numbers that quantised weights stand for: scale (B - zero)";
  t.bound =
      "of q4_k 2^-23 times the sum of |scale B| and |minimum|; of mxfp4 the value itself with the "
      "scale 2^-127; the output's rounding";
  t.dimensions = {run_time_rows("rows of B and out"),
                  {.name = "cols",
                   .help = "weights of a row: whole blocks or groups",
                   .least = 32,
                   .examples = {256, 512, 768, 1280}}};
  t.attributes = dequantize::attributes();
  t.dtypes = {{DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::f32, DType::f32}};
  t.sizes = {{{229376, 4096}},
             {{32768, 14336}, {{"weights", "q6_k"}}},
             {{196608, 2048}, {{"weights", "q4_k"}}},
             {{100, 768}, {{"weights", "int8"}, {"zeros", "groups"}, {"group", "64"}}},
             {{229376, 4096}, {{"packing", "panels"}}}};
  t.check = dequantize::check;
  t.shape = [](const Problem& problem) { return ProblemShape(dequantize::shape_of(problem)); };
  t.variants = {make_variant<dequantize::Shape>(
      "chunks", "a thread decodes CHUNKS chunks of 8 weights", dequantize::space, dequantize::plan,
      dequantize::defaults, dequantize::divisions)};
  // ITEMS were chunks of 32 weights.
  t.variants.front().migrations = {renamed("ITEMS", "CHUNKS", {{1, 4}, {2, 8}, {4, 16}})};
  set_work<dequantize::Shape>(t.variants.front(), dequantize::kernel_work);
  t.work = dequantize::work;
  t.tensors = dequantize::tensors;
  t.input = dequantize::input;
  t.harden = dequantize::harden;
  t.reference = dequantize_reference;
  t.unfused = quantized_gemm::with_rows;  // whose kernels differ in where they find bytes
  t.stand_in = fewer_rows;
  return t;
}

}  // namespace greta::kernels
