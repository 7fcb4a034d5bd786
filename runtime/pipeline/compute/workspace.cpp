#include "runtime/pipeline/compute/workspace.hpp"

#include <algorithm>
#include <utility>

#include "kernels/launch/compiled_plan.hpp"

namespace greta::runtime {

void WorkspaceSize::include(std::uint64_t bytes, std::uint64_t zeroed_bytes) {
  zeroed = std::max(zeroed, zeroed_bytes);
  scratch = std::max(scratch, bytes - zeroed_bytes);
}

void WorkspaceSize::include(const CompiledPlan& plan) {
  include(plan.workspace_bytes(), plan.zeroed_bytes());
}

Result<void> Workspace::reserve(Device& device, Stream& stream, const CompiledPlan& plan,
                                std::shared_ptr<Buffer>& replaced) {
  WorkspaceSize size = size_;
  size.include(plan);
  if (size.zeroed == size_.zeroed && size.scratch == size_.scratch) return {};
  auto buffer = device.allocate(size.bytes());
  if (!buffer) return buffer.failure();
  std::shared_ptr<Buffer> fresh = *std::move(buffer);
  if (size.zeroed > 0) {
    if (auto filled = stream.fill(*fresh, 0, size.zeroed, 0); !filled) return filled;
  }
  size_ = size;
  replaced = std::exchange(buffer_, std::move(fresh));
  return {};
}

std::uint64_t Workspace::address(const CompiledPlan& plan) const {
  if (plan.workspace_bytes() == 0) return 0;
  return buffer_->address() + size_.zeroed - plan.zeroed_bytes();
}

}  // namespace greta::runtime
