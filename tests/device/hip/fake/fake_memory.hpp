#pragma once

// Memory of fake devices: a range of addresses that this process shares with the emulator, if there
// is one. Between allocations are pages that nobody may touch, and addresses are not used again.

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

/// The bytes that [pointer, pointer + bytes) of an allocation of this device are, as the library
/// sees them; nullptr, and a misuse, where they are not all inside one. The calling process can't
/// touch device memory.
std::byte* bytes_at(const Call& call, const void* pointer, std::size_t bytes);
/// Whether an address lies in an allocation of this device, or at its end.
bool is_memory(const void* pointer);

/// The memory of a device that is reset goes.
void free_all(int device);

}  // namespace greta::test
