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

/// An operation's operands on a device, each with guard zones that no kernel may write. The zones
/// contain finite numbers for tables (TensorSpec::table), 1 for inputs of i32 and NaN for other
/// tensors (GuardValues).
class Operands {
 public:
  static Result<Operands> create(Device& device, const std::vector<TensorSpec>& specs,
                                 Bounds bounds = Bounds::guarded);

  const std::vector<TensorSpec>& specs() const { return specs_; }
  std::uint64_t address(std::size_t tensor) const;
  /// Returns the size of all tensors that kernels write.
  std::uint64_t written_bytes() const;

  /// Uploads one tensor's data. Fails if the sizes differ.
  Result<void> upload(Device& device, std::size_t tensor, const HostTensor& data);
  /// Copy a part of one tensor, beginning at byte `first`. broken_guard() does not compare a tensor
  /// that was uploaded in parts.
  Result<void> upload_part(Device& device, std::size_t tensor, std::size_t first,
                           std::span<const std::byte> from);
  Result<void> download_part(Device& device, std::size_t tensor, std::size_t first,
                             std::span<std::byte> to) const;
  /// Records fills of the outputs with a pattern.
  Result<void> poison_outputs(Stream& stream, std::uint32_t pattern = nan_pattern);
  /// Downloads all tensors whose role is not input. Reuses the memory of `outputs`, since page
  /// faults on new memory cost more than the copy.
  Result<void> download_outputs(Device& device, std::vector<HostTensor>& outputs) const;
  /// Returns which guard zone was written and where first, or the row of a strided tensor after
  /// which the gap was written, or the first element of an input that differs from what upload()
  /// wrote, or std::nullopt if all are intact. Strided tensors are read in parts of `part_bytes`.
  /// Of inputs above 1 MiB, 16 blocks of 64 KiB are compared, with the first and the last bytes.
  Result<std::optional<std::string>> broken_guard(Device& device,
                                                  std::size_t part_bytes = std::size_t{64}
                                                                           << 20) const;

 private:
  /// Bytes of an input as they were uploaded.
  struct Kept {
    std::size_t first;  ///< offset in the tensor
    std::vector<std::byte> bytes;
  };
  void keep(std::size_t tensor, const std::vector<std::byte>& data);
  /// Returns the element of an input that was written, or std::nullopt if there is none.
  Result<std::optional<std::string>> written_input(Device& device) const;
  /// Returns the first row of a tensor that is followed by anything but NaN, or std::nullopt if
  /// there is none.
  Result<std::optional<std::int64_t>> broken_gap(Device& device, std::size_t tensor,
                                                 std::size_t part_bytes) const;

  std::vector<TensorSpec> specs_;
  std::vector<GuardedBuffer> buffers_;
  std::vector<std::vector<Kept>> kept_;  ///< by tensor; empty for those that kernels write
};

}  // namespace greta::kernels
