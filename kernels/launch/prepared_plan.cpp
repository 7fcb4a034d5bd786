#include "kernels/launch/prepared_plan.hpp"

#include <algorithm>

namespace greta::kernels {

Result<PreparedPlan> PreparedPlan::create(Device& device, const LaunchPlan& plan,
                                          const Operands& operands, const Compile& compile) {
  const auto shared = [&](const KernelSource& source) -> Result<std::shared_ptr<const Kernel>> {
    auto kernel = compile(source);
    if (!kernel) return kernel.failure();
    return std::shared_ptr<const Kernel>(*std::move(kernel));
  };
  return create(device, CompiledPlan::create(plan, shared), operands);
}

Result<PreparedPlan> PreparedPlan::with_launches(Device& device, const LaunchPlan& plan,
                                                 const Operands& operands) const {
  std::size_t next = 0;
  const auto known = [&](const KernelSource&) -> Result<std::shared_ptr<const Kernel>> {
    return plan_.kernels()[next++];
  };
  return create(device, CompiledPlan::create(plan, known), operands);
}

Result<PreparedPlan> PreparedPlan::create(Device& device, Result<CompiledPlan> compiled,
                                          const Operands& operands) {
  if (!compiled) return compiled.failure();
  PreparedPlan prepared(*std::move(compiled));
  for (std::size_t i = 0; i < operands.specs().size(); ++i) {
    prepared.addresses_.push_back(operands.address(i));
  }
  if (auto made = prepared.make_workspace(device); !made) return made.failure();
  return prepared;
}

Result<void> PreparedPlan::make_workspace(Device& device) {
  if (plan_.workspace_bytes() == 0) return {};
  auto workspace = GuardedBuffer::create(device, plan_.workspace_bytes());
  if (!workspace) return workspace.failure();
  workspace_ = *std::move(workspace);
  if (plan_.zeroed_bytes() == 0) return {};
  const std::vector<std::byte> zeros(plan_.zeroed_bytes());
  return workspace_->upload(device, zeros);
}

Result<void> PreparedPlan::record(Stream& stream) const {
  return plan_.record(stream, addresses_, workspace_ ? workspace_->address() : 0);
}

Result<void> PreparedPlan::poison_workspace(Stream& stream, std::uint32_t pattern) const {
  if (!workspace_) return {};
  return workspace_->poison(stream, (plan_.zeroed_bytes() + 3) / 4 * 4, pattern);
}

Result<bool> PreparedPlan::zeroed_part_is_zero(Device& device) const {
  if (plan_.zeroed_bytes() == 0) return true;
  std::vector<std::byte> bytes(plan_.zeroed_bytes());
  if (auto done = workspace_->download(device, bytes); !done) return done.failure();
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Result<std::optional<std::string>> PreparedPlan::broken_guard(Device& device) const {
  if (!workspace_) return std::optional<std::string>{};
  return workspace_->broken_guard(device, "the workspace");
}

}  // namespace greta::kernels
