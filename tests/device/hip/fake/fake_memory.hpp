#pragma once

// Memory of fake devices: an address range that this process shares with the emulator, if there is
// one. Inaccessible pages separate allocations, and addresses are never reused.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tests/device/hip/fake/fake_state.hpp"
#include "tests/layers.hpp"

namespace greta::test {

struct Allocation {
  std::byte* start = nullptr;
  std::size_t bytes = 0;
  int device = 0;
};

/// Returns the library's mapping of [pointer, pointer + bytes) of an allocation of this device.
/// Returns nullptr and records a misuse if the range is not inside one allocation. The calling
/// process can't access device memory.
std::byte* bytes_at(const Call& call, const void* pointer, std::size_t bytes);
/// Returns whether an address lies in an allocation of this device or at its end.
bool is_memory(const void* pointer);

/// Frees the memory of a device that is reset.
void free_all(int device);

}  // namespace greta::test
