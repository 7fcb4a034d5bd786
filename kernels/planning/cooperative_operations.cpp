#include "kernels/planning/cooperative_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kernels/planning/device_limits.hpp"

namespace greta::kernels {

std::vector<MatrixOperation> cooperative_products(DType in, const DeviceInfo& device) {
  std::vector<MatrixOperation> list;
  const auto volume = [](const MatrixOperation& o) { return o.m * o.k; };
  for (const MatrixOperation& operation : device.matrix_operations) {
    if (operation.input != in || bits_of(in) != 16) continue;
    const auto same = std::find_if(list.begin(), list.end(),
                                   [&](const auto& known) { return known.n == operation.n; });
    if (same == list.end()) {
      list.push_back(operation);
    } else if (volume(*same) < volume(operation)) {
      *same = operation;
    }
  }
  return list;
}

MatrixOperation product_of(const std::vector<MatrixOperation>& products, int n) {
  for (const MatrixOperation& operation : products) {
    if (static_cast<int>(operation.n) == n) return operation;
  }
  return {.m = 1U << 30, .n = 1U << 30, .k = 1U << 30};
}

std::vector<int> product_names(const std::vector<MatrixOperation>& products) {
  std::vector<int> names;
  for (const MatrixOperation& operation : products) names.push_back(static_cast<int>(operation.n));
  return names.empty() ? std::vector<int>{16} : names;
}

std::vector<int> subgroup_sizes(const DeviceInfo& device) {
  std::vector<int> sizes;
  for (std::uint32_t s = device.min_subgroup_size; s <= device.max_subgroup_size && s > 0; s *= 2) {
    sizes.push_back(static_cast<int>(s));
  }
  return sizes.empty() ? std::vector<int>{static_cast<int>(device.subgroup_size)} : sizes;
}

void add_operation(Defines& defines, const MatrixOperation& operation) {
  defines.emplace_back("INSTR_M", std::to_string(operation.m));
  defines.emplace_back("INSTR_N", std::to_string(operation.n));
  defines.emplace_back("INSTR_K", std::to_string(operation.k));
}

void require_subgroups(KernelSource& kernel, const DeviceInfo& device, const Config& config) {
  if (!device.subgroup_size_control) return;
  kernel.required_subgroup_size = static_cast<std::uint32_t>(config["SUBGROUP"]);
}

std::vector<Constraint> cooperative_cpu_constraints(
    const DeviceInfo& device, const std::vector<MatrixOperation>& products,
    std::vector<std::string> read,
    const std::function<CooperativeLoop(const Config&, const MatrixOperation&)>& loop_of,
    std::int64_t length) {
  if (!vectorising_cpu(device) || products.empty()) return {};
  constexpr std::int64_t most_products = 32;
  read.emplace_back("INSTR");
  std::vector<std::string> with_subgroup = read;
  with_subgroup.emplace_back("SUBGROUP");
  return {{"cpu_code_size",
           fmt::format("more than {} products of a subgroup in a step compile slowly for a CPU",
                       most_products),
           {read,
            [=](const Config& c) {
              return loop_of(c, product_of(products, c["INSTR"])).products <= most_products;
            }}},
          {"loop_limit",
           fmt::format("the CPU driver runs 65535 iterations of loops: too few for {}", length),
           {with_subgroup, [=](const Config& c) {
              const MatrixOperation o = product_of(products, c["INSTR"]);
              const CooperativeLoop loop = loop_of(c, o);
              const std::int64_t sums = std::int64_t{o.m} * o.n / c["SUBGROUP"];
              return loop.steps * ((loop.products + loop.others) * (sums + 1) + 8) <
                     most_iterations;
            }}}};
}

}  // namespace greta::kernels
