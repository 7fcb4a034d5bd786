#pragma once

#include <cstdint>
#include <memory>

#include "kernels/launch/compiled_plan.hpp"
#include "runtime/device/device.hpp"

namespace greta::runtime {

/// The workspace size for operations that use one workspace in sequence. Their zeroed parts end at
/// a common address, at which all scratch parts begin, so that no operation overwrites the part
/// that another one leaves zero.
struct WorkspaceSize {
  std::uint64_t zeroed = 0;   ///< bytes before that address
  std::uint64_t scratch = 0;  ///< bytes from there on

  /// Enlarges the workspace for a plan with these sizes in total and of its zeroed part.
  void include(std::uint64_t bytes, std::uint64_t zeroed_bytes);
  void include(const CompiledPlan& plan);
  std::uint64_t bytes() const { return zeroed + scratch; }
};

/// The workspace of a stream, which grows on demand.
class Workspace {
 public:
  /// Ensures that there is room for a plan. Records a fill in `stream` to zero new memory where
  /// required. Sets `replaced` to the memory that earlier work may still use, or to null.
  Result<void> reserve(Device& device, Stream& stream, const CompiledPlan& plan,
                       std::shared_ptr<Buffer>& replaced);
  /// Returns the address of a plan's workspace.
  std::uint64_t address(const CompiledPlan& plan) const;

 private:
  WorkspaceSize size_;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace greta::runtime
