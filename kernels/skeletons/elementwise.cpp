#include "kernels/skeletons/elementwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/model/random.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/planning/stride_attributes.hpp"

namespace greta::kernels {
namespace {

/// Returns the constraints that can reject a configuration of this shape.
std::vector<Constraint> shape_constraints(const ElementwiseShape& shape, const DeviceInfo& device) {
  const std::int64_t groups = most_workgroups(device);
  std::vector<Constraint> list{
      {"grid",
       fmt::format("the elements are more than {} workgroups", groups),
       {{"THREADS", "VEC", "ITEMS"},
        [groups, count = shape.workgroups](const Config& c) { return count(c) <= groups; }}}};
  if (shape.run > 0) {
    list.push_back({"alignment",
                    fmt::format("VEC must divide {}, which is {}", shape.run_name, shape.run),
                    shape.run % p["VEC"] == 0});
  }
  if (shape.least_width > 1) {
    list.push_back({"pairs", fmt::format("VEC must be at least {}", shape.least_width),
                    p["VEC"] >= shape.least_width});
  }
  if (!shape.items_name.empty()) {
    list.push_back(
        {"items",
         fmt::format("ITEMS must not exceed {}, which are {}", shape.items_name, shape.most_items),
         p["ITEMS"] <= shape.most_items});
  }
  return list;
}

Alternative space(const std::string& variant, const ElementwiseShape& shape,
                  const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device);
  Alternative a{variant, {}, {}};
  a.parameters = {{"THREADS", {64, 128, 256, 512, 1024}},
                  {"VEC", vector_widths(shape.in)},
                  {"ITEMS", {1, 2, 4, 8}}};
  a.constraints = {storage_constraint(shape.in, shape.out, device),
                   {"workgroup_threads", fmt::format("the device allows {} threads", threads),
                    p["THREADS"] <= threads}};
  append(a.constraints, shape_constraints(shape, device));
  append(a.constraints, stride_constraints(shape.strides));
  return a;
}

/// Returns the fewest ITEMS with which a thread that stores one of its vectors loads them in the
/// fewest rounds.
int items_of_one_round(const ElementwiseShape& shape) {
  const auto rounds = [&](int items) { return shape.rounds(Config{"", {{"ITEMS", items}}}); };
  int items = 1;
  while (items < largest_items && rounds(items) > rounds(largest_items)) items *= 2;
  return items;
}

/// Prefers the widest loads, and then many loads in flight if there are enough workgroups to occupy
/// the device. Otherwise a launch takes little more than the time of one load from memory: then
/// narrow loads need less code, which comes from memory, too. A CPU has few loads in flight and
/// runs the threads of a workgroup sequentially.
///
/// ITEMS of a thread that stores one of its vectors don't change the number of workgroups. So all
/// are in flight at once, up to four of them if the device is occupied.
std::vector<Config> defaults(const std::string& variant, const ElementwiseShape& shape,
                             const DeviceInfo& device) {
  const std::int64_t most =
      common_step(shape.strides, shape.run > 0 ? shape.run : vector_widths(shape.in).back());
  const int widest = std::min(widest_vector(shape.in, most, most),
                              vectorising_cpu(device) ? 8 : shape.default_width);
  const int narrow = std::max(shape.least_width, std::min(widest, 2));
  const auto config = [&](int threads, int vec, int items) {
    return Config{variant, {{"THREADS", threads}, {"VEC", vec}, {"ITEMS", items}}};
  };
  const int alone = shape.rounds ? items_of_one_round(shape) : 0;
  std::vector<Config> configs;
  if (vectorising_cpu(device)) configs.push_back(config(512, widest, 1));
  for (const auto& [threads, items] : {std::pair{256, 4}, {256, 2}, {256, 1}, {128, 1}}) {
    const Config next = config(threads, widest, alone > 0 ? std::min(alone, 4) : items);
    const bool busy = shape.workgroups(next) >= busy_workgroups(device);
    const bool listed = !configs.empty() && configs.back() == next;
    if (items <= shape.most_items && busy && !listed) configs.push_back(next);
  }
  configs.push_back(alone > 0 ? config(64, widest, alone) : config(128, narrow, 1));
  return configs;
}

LaunchPlan plan(const std::string& path, const ElementwiseShape& shape, const DeviceInfo& device,
                const Config& config) {
  Defines defines = type_defines({{"IN", shape.in}, {"OUT", shape.out}});
  add_parameters(defines, config);
  add_pack(defines, device, "X", shape.in, config["VEC"]);
  if (device.language == Language::glsl) {
    defines.emplace_back("F16_ARITHMETIC", device.f16_arithmetic ? "1" : "0");
  }
  defines.insert(defines.end(), shape.defines.begin(), shape.defines.end());
  LaunchPlan plan;
  plan.sources.push_back(kernel_source(device, path, defines, config["THREADS"], shape.arguments));
  const auto workgroups = static_cast<std::uint64_t>(shape.workgroups(config));
  plan.launches.push_back({0, grid(device, plan.sources[0], workgroups), shape.arguments});
  return plan;
}

KernelWork work(const ElementwiseShape& shape, const DeviceInfo&, const Config& config) {
  const double threads = config["THREADS"], elements = threads * config["VEC"] * config["ITEMS"];
  LaunchWork work;
  work.threads = threads;
  work.workgroups = static_cast<double>(shape.workgroups(config));
  work.registers = 24 + 2 * config["VEC"] * config["ITEMS"];
  const double rounds = shape.rounds ? static_cast<double>(shape.rounds(config)) : 1;
  const double stored = shape.rounds ? threads * config["VEC"] : elements;
  work.ahead_bytes = elements * bytes_of(shape.in, 1);
  work.read_bytes = rounds * work.ahead_bytes;
  work.written_bytes = stored * bytes_of(shape.out, 1);
  work.loads = rounds * elements / config["VEC"];
  work.vector_flops = rounds * 8 * elements;
  work.unique_bytes = work.workgroups * (work.read_bytes + work.written_bytes);
  return {work};
}

}  // namespace

void set_elementwise(Operation& operation, std::string path, std::string summary,
                     ElementwiseShape (*shape)(const Problem&)) {
  const std::string name = path.substr(path.find('/') + 1);
  operation.shape = [shape](const Problem& problem) { return ProblemShape(shape(problem)); };
  operation.variants = {make_variant<ElementwiseShape>(
      name, std::move(summary),
      [name](const ElementwiseShape& s, const DeviceInfo& device) {
        return space(name, s, device);
      },
      [path](const ElementwiseShape& s, const DeviceInfo& device, const Config& config) {
        return plan(path, s, device, config);
      },
      [name](const ElementwiseShape& s, const DeviceInfo& device) {
        return defaults(name, s, device);
      },
      [](const ElementwiseShape& s, const Config& config) { return s.divisions(config); })};
  set_work<ElementwiseShape>(operation.variants.front(), work);
}

void add_extents(std::vector<Argument>& arguments, const Problem& problem,
                 std::initializer_list<const char*> dimensions) {
  for (const char* name : dimensions) {
    arguments.emplace_back(static_cast<std::uint32_t>(problem.dim(name)));
  }
}

void add_constants(Defines& defines, const Problem& problem,
                   std::initializer_list<const char*> dimensions) {
  for (const char* name : dimensions) {
    defines.emplace_back(define_name(name), std::to_string(problem.dim(name)));
  }
}

ElementwiseShape flat_shape(const Problem& problem, std::int64_t elements) {
  ElementwiseShape shape;
  shape.in = problem.dtype;
  shape.out = problem.out_dtype;
  shape.strides = strides_of(problem);
  shape.workgroups = [elements](const Config& c) {
    return ceil_div(ceil_div(elements, c["VEC"]), std::int64_t{c["THREADS"]} * c["ITEMS"]);
  };
  shape.divisions = [elements](const Config& c) -> std::vector<Division> {
    return {{"vectors", ceil_div(elements, c["VEC"]), std::int64_t{c["THREADS"]} * c["ITEMS"]},
            {"elements", elements, c["VEC"], "VEC"}};
  };
  return shape;
}

ElementwiseShape row_shape(const Problem& problem, std::int64_t rows, std::int64_t run,
                           std::string_view run_name) {
  ElementwiseShape shape = flat_shape(problem, rows * run);
  shape.divisions = [elements = rows * run](const Config& c) -> std::vector<Division> {
    return {{"vectors", elements / c["VEC"], std::int64_t{c["THREADS"]} * c["ITEMS"]}};
  };
  shape.run = run;
  shape.run_name = run_name;
  return shape;
}

HostTensor random_activations(const Problem&, const TensorSpec& spec, std::uint64_t seed) {
  HostTensor tensor = random_tensor(spec, seed);
  for (std::size_t i = 0; i < spec.elements(); ++i) {
    store_element(spec.dtype, tensor.data.data(), i, 32 * tensor.at(i));
  }
  return tensor;
}

HostTensor random_indices(const TensorSpec& spec, std::int64_t most, std::uint64_t seed) {
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < spec.elements(); ++i) {
    const auto index = uniform_below(random, static_cast<std::uint64_t>(most) + 1);
    store_element(spec.dtype, tensor.data.data(), i, static_cast<double>(index));
  }
  return tensor;
}

}  // namespace greta::kernels
