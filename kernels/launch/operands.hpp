#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/launch/guarded_buffer.hpp"
#include "kernels/model/tensor.hpp"
#include "runtime/device/device.hpp"

namespace greta::kernels {

/// An operation's operands on a device, each with a guard zone before and after it that no kernel
/// may write. They are finite for tables (TensorSpec::table) and NaN for others (GuardValues).
class Operands {
 public:
  static Result<Operands> create(Device& device, const std::vector<TensorSpec>& specs);

  const std::vector<TensorSpec>& specs() const { return specs_; }
  std::uint64_t address(std::size_t tensor) const;
  /// Of the tensors that are written.
  std::uint64_t written_bytes() const;

  /// Uploads one tensor's data; sizes must agree.
  Result<void> upload(Device& device, std::size_t tensor, const HostTensor& data);
  /// A part of one tensor, from its byte `first` on.
  Result<void> upload_part(Device& device, std::size_t tensor, std::size_t first,
                           std::span<const std::byte> from);
  Result<void> download_part(Device& device, std::size_t tensor, std::size_t first,
                             std::span<std::byte> to) const;
  /// Records filling the outputs with NaN.
  Result<void> poison_outputs(Stream& stream);
  /// Everything the kernels wrote: the tensors whose role is not input. Memory that `outputs` holds
  /// since the last time is used again: fresh pages cost more than the copy.
  Result<void> download_outputs(Device& device, std::vector<HostTensor>& outputs) const;
  /// Which guard zone was written, and where first, or behind which row of a tensor whose rows are
  /// not packed; nothing when all are intact. Such tensors are read in parts of `part_bytes`.
  Result<std::optional<std::string>> broken_guard(Device& device,
                                                  std::size_t part_bytes = std::size_t{64}
                                                                           << 20) const;

 private:
  /// The first row of a tensor behind which is something else than NaN; nothing where there is
  /// none.
  Result<std::optional<std::int64_t>> broken_gap(Device& device, std::size_t tensor,
                                                 std::size_t part_bytes) const;

  std::vector<TensorSpec> specs_;
  std::vector<GuardedBuffer> buffers_;
};

}  // namespace greta::kernels
