#include "tuner/measure/cache_flush.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tuner/measure/ceiling_kernels.hpp"

namespace greta::tuner {

std::uint64_t default_flush_bytes(const DeviceInfo& info) {
  return (info.is_cpu() ? 2 : 4) * info.last_level_cache_bytes;
}

Result<CacheFlush> CacheFlush::create(Device& device, std::uint64_t bytes) {
  CacheFlush flush;
  flush.bytes_ = (bytes + copy_group_bytes - 1) / copy_group_bytes * copy_group_bytes;
  flush.cache_bytes_ = device.info().last_level_cache_bytes;
  flush.most_groups_ = device.info().max_grid[0];
  auto memory = device.allocate(flush.bytes_);
  if (!memory) return memory.failure();
  flush.memory_ = *std::move(memory);
  if (!device.info().is_cpu()) {
    auto kernel = device.compile(read_kernel(device.info()));
    if (!kernel) return kernel.failure();
    flush.read_ = *std::move(kernel);
  }
  return flush;
}

Result<void> CacheFlush::record(Stream& stream, std::uint64_t written) {
  if (!read_) return stream.fill(*memory_, 0, bytes_, pattern_++);
  std::array<std::byte, 16> arguments{};
  const std::uint64_t address = memory_->address();
  const auto pieces = static_cast<std::uint32_t>(bytes_ / copy_group_bytes);
  const std::uint32_t groups = std::min(pieces, most_groups_);
  std::memcpy(arguments.data(), &address, sizeof address);
  std::memcpy(arguments.data() + 8, &pieces, sizeof pieces);
  std::memcpy(arguments.data() + 12, &groups, sizeof groups);
  if (auto r = stream.launch(*read_, {groups, 1, 1}, arguments); !r) return r;
  const std::uint64_t dirty = std::min({written, cache_bytes_, bytes_}) / 4 * 4;
  if (dirty == 0) return {};
  return stream.fill(*memory_, 0, dirty, pattern_++);
}

}  // namespace greta::tuner
