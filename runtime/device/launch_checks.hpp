#pragma once

#include <cstddef>

#include "runtime/device/device.hpp"

namespace greta::device {

// Checks that every backend applies to calls before they reach the driver. All of them throw
// Refusal.

/// Checks what is known before compiling: language, workgroup, subgroup size, argument bytes and
/// shared memory bytes. Throws `compile`.
void check_source(const DeviceInfo& info, const KernelSource& source);
/// Throws `invalid_argument` for an empty grid or the wrong number of argument bytes, and `launch`
/// for a grid that exceeds the device's limits.
void check_launch(const DeviceInfo& info, Grid grid, std::size_t argument_bytes,
                  std::size_t expected_argument_bytes);
/// Throws `invalid_argument` when [offset, offset + bytes) is not within the buffer.
void check_range(const Buffer& buffer, std::size_t offset, std::size_t bytes);
/// Throws `invalid_argument` for a copy whose source and target overlap.
void check_apart(const Buffer& to, std::size_t to_offset, const Buffer& from,
                 std::size_t from_offset, std::size_t bytes);
/// Throws `invalid_argument` for a fill that does not consist of whole 32-bit words.
void check_words(std::size_t offset, std::size_t bytes);

}  // namespace greta::device
