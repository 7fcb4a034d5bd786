#include "kernels/launch/prepared_plan.hpp"

#include <algorithm>

#include "kernels/launch/argument_block.hpp"

namespace greta {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace

std::vector<std::byte> pack_arguments(const std::vector<Argument>& arguments,
                                      const Operands& operands, std::uint64_t workspace_address) {
  ArgumentBlock block;
  for (const auto& argument : arguments) {
    std::visit(Overloaded{[&](OperandArgument a) { block.add(operands.address(a.tensor)); },
                          [&](WorkspaceArgument a) { block.add(workspace_address + a.offset); },
                          [&](auto scalar) { block.add(scalar); }},
               argument);
  }
  return block.take();
}

Result<PreparedPlan> PreparedPlan::create(Device& device, const LaunchPlan& plan,
                                          const Operands& operands, const Compile& compile) {
  PreparedPlan prepared;
  prepared.launches_ = plan.launches;
  for (const auto& source : plan.sources) {
    auto kernel = compile(source);
    if (!kernel) return kernel.failure();
    prepared.kernels_.push_back(*std::move(kernel));
  }
  const auto workspace = prepared.make_workspace(device, plan);
  if (!workspace) return workspace.failure();
  for (const auto& launch : plan.launches) {
    prepared.arguments_.push_back(pack_arguments(launch.arguments, operands, *workspace));
  }
  return prepared;
}

Result<std::uint64_t> PreparedPlan::make_workspace(Device& device, const LaunchPlan& plan) {
  if (plan.workspace_bytes == 0) return std::uint64_t{0};
  auto workspace = GuardedBuffer::create(device, plan.workspace_bytes);
  if (!workspace) return workspace.failure();
  workspace_ = *std::move(workspace);
  zeroed_bytes_ = plan.zeroed_bytes;
  if (zeroed_bytes_ > 0) {
    const std::vector<std::byte> zeros(zeroed_bytes_);
    if (auto done = workspace_->upload(device, zeros); !done) return done.failure();
  }
  return workspace_->address();
}

Result<void> PreparedPlan::record(Stream& stream) const {
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    auto launched = stream.launch(*kernels_[launches_[i].source], launches_[i].grid, arguments_[i]);
    if (!launched) return launched;
  }
  return {};
}

Result<void> PreparedPlan::poison_workspace(Stream& stream) const {
  if (!workspace_) return {};
  return workspace_->poison(stream, (zeroed_bytes_ + 3) / 4 * 4);
}

Result<bool> PreparedPlan::zeroed_part_is_zero(Device& device) const {
  if (zeroed_bytes_ == 0) return true;
  std::vector<std::byte> bytes(zeroed_bytes_);
  if (auto done = workspace_->download(device, bytes); !done) return done.failure();
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Result<std::optional<std::string>> PreparedPlan::broken_guard(Device& device) const {
  if (!workspace_) return std::optional<std::string>{};
  return workspace_->broken_guard(device, "the workspace");
}

std::string PreparedPlan::content_keys() const {
  std::string keys;
  for (const auto& kernel : kernels_) keys += (keys.empty() ? "" : ",") + kernel->content_key();
  return keys;
}

std::vector<KernelStatistics> PreparedPlan::statistics() const {
  std::vector<KernelStatistics> all;
  for (const auto& kernel : kernels_) all.push_back(kernel->statistics());
  return all;
}

}  // namespace greta
