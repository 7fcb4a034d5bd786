#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/launch/operands.hpp"
#include "runtime/device/device.hpp"

namespace greta::tuner {

/// Returns the kernel that compares two ranges of memory, or copies one to the other.
KernelSource same_bits_kernel(const DeviceInfo& device, bool compares);

/// Compares on the device what launches of a kernel write with what a first launch wrote, so that
/// the device need not wait for the host between them.
class SameBits {
 public:
  /// Compiles the kernels, and keeps copies of the operands that launches both read and write,
  /// which hold their inputs. `slots` is the number of launches that can be compared before counts
  /// are read. The operands must outlive this object.
  static Result<SameBits> create(Device& device, Stream& stream, const Operands& operands,
                                 std::uint32_t slots);

  /// Keeps the present outputs as those that are right.
  Result<void> keep(Stream& stream);
  /// Records the forgetting of earlier comparisons.
  Result<void> record_clear(Stream& stream);
  /// Records that operands that are both read and written get their inputs back.
  Result<void> record_restore(Stream& stream) const;
  /// Records the comparison of all outputs with those that were kept.
  Result<void> record_compare(Stream& stream, std::uint32_t slot) const;
  /// Returns the number of the first `slots` comparisons that found a difference. The stream must
  /// have been synchronised.
  Result<std::uint64_t> wrong(Device& device, std::uint32_t slots) const;

  std::uint32_t slots() const { return slots_; }

 private:
  struct Tensor {
    std::uint64_t address = 0, bytes = 0;
    bool restored = false;            // read and written
    std::unique_ptr<Buffer> input{};  // null unless restored
    std::unique_ptr<Buffer> expected{};
    /// Returns where a copy of the tensor begins: at the same byte of a word.
    std::uint64_t start_in(const Buffer& copy) const { return copy.address() + address % 4; }
  };
  /// Copies from one address to the other, or compares them. Both are at the same byte of a word.
  Result<void> launch(Stream& stream, const Kernel& kernel, std::uint64_t to, std::uint64_t from,
                      std::uint64_t bytes, std::uint64_t found) const;

  std::vector<Tensor> tensors_;  // those that launches write
  std::unique_ptr<Kernel> copy_, compare_;
  std::unique_ptr<Buffer> found_;  // a word for each slot, which is not 0 if a difference was found
  std::uint32_t slots_ = 0;
  std::uint32_t most_groups_ = 1;
};

}  // namespace greta::tuner
