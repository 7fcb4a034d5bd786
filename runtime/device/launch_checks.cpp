#include "runtime/device/launch_checks.hpp"

#include <fmt/format.h>

#include "runtime/device/refusal.hpp"

namespace greta::device {

namespace {

[[noreturn]] void refuse(const KernelSource& source, const std::string& why) {
  throw Refusal(Status::compile, fmt::format("{}: {}", source.name, why));
}

void check_block(const DeviceInfo& info, const KernelSource& source) {
  std::uint64_t invocations = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    invocations *= source.block[axis];
    if (source.block[axis] == 0 || source.block[axis] > info.max_workgroup_size[axis]) {
      refuse(source,
             fmt::format("a workgroup of {}, the device takes {}", fmt::join(source.block, "x"),
                         fmt::join(info.max_workgroup_size, "x")));
    }
  }
  if (invocations > info.max_workgroup_invocations) {
    refuse(source, fmt::format("a workgroup of {} invocations, the device takes {}", invocations,
                               info.max_workgroup_invocations));
  }
}

void check_subgroup_size(const DeviceInfo& info, const KernelSource& source) {
  const std::uint32_t size = source.required_subgroup_size;
  if (size == 0) return;
  const bool power_of_two = (size & (size - 1)) == 0;
  if (!info.subgroup_size_control || !power_of_two || size < info.min_subgroup_size ||
      size > info.max_subgroup_size) {
    refuse(source, fmt::format("subgroup size {} is not possible on the device, which has {} to {}",
                               size, info.min_subgroup_size, info.max_subgroup_size));
  }
}

}  // namespace

void check_source(const DeviceInfo& info, const KernelSource& source) {
  if (source.language != info.language) {
    refuse(source, fmt::format("written in {}, the device takes {}", to_string(source.language),
                               to_string(info.language)));
  }
  if (source.argument_bytes > info.max_argument_bytes) {
    refuse(source, fmt::format("{} bytes of arguments, the device takes {}", source.argument_bytes,
                               info.max_argument_bytes));
  }
  if (source.dynamic_shared_bytes != 0 && source.language != Language::hip) {
    refuse(source, "its launches can't give it shared memory: that is for HIP kernels");
  }
  if (source.dynamic_shared_bytes > info.shared_memory_bytes) {
    refuse(source, fmt::format("{} bytes of shared memory, the device has {}",
                               source.dynamic_shared_bytes, info.shared_memory_bytes));
  }
  if (source.call && library_of(*source.call, info).empty()) {
    refuse(source, "it needs a vendor's library, which is not open");
  }
  check_block(info, source);
  check_subgroup_size(info, source);
}

void check_launch(const DeviceInfo& info, Grid grid, std::size_t argument_bytes,
                  std::size_t expected_argument_bytes) {
  if (argument_bytes != expected_argument_bytes) {
    throw Refusal(Status::invalid_argument,
                  fmt::format("{} bytes of arguments for a kernel that takes {}", argument_bytes,
                              expected_argument_bytes));
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] == 0) {
      throw Refusal(Status::invalid_argument,
                    fmt::format("an empty grid: {}", fmt::join(grid, "x")));
    }
    if (grid[axis] > info.max_grid[axis]) {
      throw Refusal(Status::launch,
                    fmt::format("a grid of {} workgroups, the device takes {}",
                                fmt::join(grid, "x"), fmt::join(info.max_grid, "x")));
    }
  }
}

void check_range(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
  if (offset <= buffer.size() && bytes <= buffer.size() - offset) return;
  throw Refusal(Status::invalid_argument,
                fmt::format("bytes {} to {} are outside a buffer of {} bytes", offset,
                            offset + bytes, buffer.size()));
}

void check_apart(const Buffer& to, std::size_t to_offset, const Buffer& from,
                 std::size_t from_offset, std::size_t bytes) {
  const bool apart = to_offset >= from_offset + bytes || from_offset >= to_offset + bytes;
  if (&to == &from && !apart) {
    throw Refusal(Status::invalid_argument, "a copy whose source and target overlap");
  }
}

void check_words(std::size_t offset, std::size_t bytes) {
  if (offset % 4 == 0 && bytes % 4 == 0) return;
  throw Refusal(
      Status::invalid_argument,
      fmt::format("a fill of {} bytes at {}: both must be multiples of 4", bytes, offset));
}

}  // namespace greta::device
