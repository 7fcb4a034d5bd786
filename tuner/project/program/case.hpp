// The types of launches.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

enum class Type { f32, f16, bf16, i32 };

struct Buffer {
  const char* name;
  std::size_t bytes;
  Type type;
  const char* file;          ///< initial contents; "": bytes 0xFF
  const char* expected;      ///< reference values; "": not checked
  std::size_t zeroed_bytes;  ///< leading zeros before and after a run: counters of a workspace
};

/// A number, or an address within a buffer.
struct Argument {
  int buffer;          ///< position in `buffers`; -1: a number
  std::uint64_t bits;  ///< of the number, or the offset in bytes
  std::size_t bytes;   ///< size and alignment
};
inline Argument address(int buffer, std::uint64_t offset = 0) {
  return {buffer, offset, 8};
}
inline Argument u32(std::uint32_t number) {
  return {-1, number, 4};
}
inline Argument u64(std::uint64_t number) {
  return {-1, number, 8};
}
/// A float by its bits.
inline Argument f32(std::uint32_t bits) {
  return {-1, bits, 4};
}

struct Launch {
  const char* binary;
  const char* entry;
  std::array<std::uint32_t, 3> grid;   ///< number of workgroups
  std::array<std::uint32_t, 3> block;  ///< threads of a workgroup
  std::uint32_t shared_bytes;          ///< dynamic shared memory of a workgroup
  std::uint32_t subgroup_size;         ///< that the kernel requires; 0: any
  std::vector<Argument> arguments;
};
