#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/device/device.hpp"

namespace greta::kernels {

/// What a kernel finds that reads a guard zone.
enum class GuardValues {
  nan,     ///< NaN in every floating point type, and negative in i32
  finite,  ///< a number of moderate size in every type: where NaN may be what is expected
};

/// Device memory with a guard zone before and after it that no kernel may write. The zone after it
/// starts at its very last byte, whatever its size. On a device that watches bounds itself there
/// are no zones, in which it would see nothing wrong.
class GuardedBuffer {
 public:
  static Result<GuardedBuffer> create(Device& device, std::size_t bytes,
                                      GuardValues values = GuardValues::nan);

  std::uint64_t address() const;  ///< of byte 0, 256-aligned
  std::size_t size() const { return bytes_; }

  /// From byte `first` on; at most size() - first bytes.
  Result<void> upload(Device& device, std::span<const std::byte> from, std::size_t first = 0);
  Result<void> download(Device& device, std::span<std::byte> to, std::size_t first = 0) const;
  /// Records filling everything from byte `first`, a multiple of 4, on with NaN of every type.
  Result<void> poison(Stream& stream, std::size_t first = 0) const;
  /// Which guard zone of this buffer, called `name`, was written, and where first; nothing when
  /// both are intact.
  Result<std::optional<std::string>> broken_guard(Device& device, const std::string& name) const;

 private:
  std::size_t bytes_ = 0;
  std::size_t guard_bytes_ = 0;      ///< of each zone
  std::uint32_t guard_pattern_ = 0;  ///< what they hold
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace greta::kernels
