#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/device/device.hpp"
#include "runtime/device/system/fence.hpp"

namespace greta::kernels {

/// The contents of guard zones, for kernels that read them.
enum class GuardValues {
  nan,     ///< NaN in every floating-point type, negative in i32
  finite,  ///< a moderate number in every type, for operands where NaN may be the expected result
  one,     ///< 1 in i32, which as a number of rows or an id has an effect that is seen
};

/// How accesses past the end of a buffer are found.
enum class Bounds {
  guarded,  ///< by what a write leaves in the guard zone, which a read does not show
  fenced,   ///< where kernels run on this process's processors, also by a fault of any access from
            ///< the next multiple of 16 bytes on; the first byte is `offset` after such a one then
};

/// What outputs and workspaces contain before a checked launch: NaN in f32 and, per half, in f16
/// and bf16, so that a kernel that reads it computes NaN. As i32 it is negative, so it is no valid
/// length, position or id.
inline constexpr std::uint32_t nan_pattern = 0xFFFFFFFF;

/// Device memory with a guard zone before and after it that no kernel may write. The second zone
/// begins directly after the last byte. Devices that check bounds themselves get no guard zones,
/// because these would hide invalid accesses.
class GuardedBuffer {
 public:
  /// The first byte is `offset` bytes after a multiple of 256.
  static Result<GuardedBuffer> create(Device& device, std::size_t bytes,
                                      GuardValues values = GuardValues::nan, std::size_t offset = 0,
                                      Bounds bounds = Bounds::guarded);

  std::uint64_t address() const;  ///< of byte 0
  std::size_t size() const { return bytes_; }

  /// Copy to and from the buffer, beginning at byte `first`; at most size() - first bytes.
  Result<void> upload(Device& device, std::span<const std::byte> from, std::size_t first = 0);
  Result<void> download(Device& device, std::span<std::byte> to, std::size_t first = 0) const;
  /// Records a fill with `pattern` from byte `first`, a multiple of 4, to the end.
  Result<void> poison(Stream& stream, std::size_t first = 0,
                      std::uint32_t pattern = nan_pattern) const;
  /// Returns which guard zone of this buffer, called `name`, was written and where first, or
  /// std::nullopt if both are intact.
  Result<std::optional<std::string>> broken_guard(Device& device, const std::string& name) const;
  /// The same for several buffers and their names, in little more time than for one.
  static Result<std::optional<std::string>> first_broken_guard(
      Device& device, std::span<const std::pair<const GuardedBuffer*, std::string>> named);

 private:
  /// Moves the bytes up, so that as few as possible lie between them and the border of a page.
  void move_to_page();
  /// Closes the pages after that border.
  void close();

  std::size_t bytes_ = 0;
  std::size_t start_ = 0;            ///< of byte 0 in the allocation
  std::size_t end_ = 0;              ///< of the zone after the last byte
  bool guarded_ = false;             ///< has the zones
  std::uint32_t guard_pattern_ = 0;  ///< contents of the zones
  std::unique_ptr<Buffer> buffer_;
  Fence fence_;  ///< goes before the memory does
};

}  // namespace greta::kernels
