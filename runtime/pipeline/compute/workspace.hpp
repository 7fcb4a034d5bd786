#pragma once

#include <cstdint>
#include <memory>

#include "kernels/launch/compiled_plan.hpp"
#include "runtime/device/device.hpp"

namespace greta::runtime {

/// How much memory operations need that use one workspace after each other. Their zeroed parts end
/// at one address, and everything else begins there, so that what one of them leaves zero is never
/// written by another.
struct WorkspaceSize {
  std::uint64_t zeroed = 0;   ///< bytes before that address
  std::uint64_t scratch = 0;  ///< bytes from there on

  /// Makes room for a plan as well: all its bytes, and those of them that begin as zeros.
  void include(std::uint64_t bytes, std::uint64_t zeroed_bytes);
  void include(const CompiledPlan& plan);
  std::uint64_t bytes() const { return zeroed + scratch; }
};

/// The workspace of a stream, which grows.
class Workspace {
 public:
  /// Has room for a plan from now on. New memory is zeroed where it must be by a fill that is
  /// recorded in `stream`; `replaced` is the memory that earlier work may still use, or null.
  Result<void> reserve(Device& device, Stream& stream, const CompiledPlan& plan,
                       std::shared_ptr<Buffer>& replaced);
  /// Where a plan's workspace begins.
  std::uint64_t address(const CompiledPlan& plan) const;

 private:
  WorkspaceSize size_;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace greta::runtime
