#include "runtime/device/memory_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace greta::device {

/// A chunk and its free ranges, ordered by offset so that neighbours can be merged.
struct MemoryPool::Slab {
  std::uint64_t serial = 0;  ///< older chunks are reused first, so that younger ones can be trimmed
  std::uint64_t size = 0;
  std::unique_ptr<MemoryChunk> chunk;
  std::map<std::uint64_t, std::uint64_t> free;

  bool unused() const { return free.size() == 1 && free.begin()->second == size; }
};

MemoryPool::MemoryPool(std::unique_ptr<MemorySource> source, const Options& options)
    : source_(std::move(source)), options_(options) {}

MemoryPool::~MemoryPool() = default;

void MemoryPool::add_free(Slab& slab, std::uint64_t offset, std::uint64_t size) {
  slab.free.emplace(offset, size);
  free_.insert({size, slab.serial, offset, &slab});
}

void MemoryPool::remove_free(Slab& slab, std::uint64_t offset, std::uint64_t size) {
  slab.free.erase(offset);
  free_.erase({size, slab.serial, offset, &slab});
}

Result<MemoryPool::Block> MemoryPool::allocate(std::uint64_t bytes) {
  if (bytes == 0) return Failure{Status::invalid_argument, "an allocation of 0 bytes", {}};
  const std::uint64_t most = std::min(options_.limit_bytes, options_.max_chunk_bytes);
  if (bytes > most) {
    return Failure{
        Status::out_of_memory,
        fmt::format(
            "{} bytes were asked for, the device's memory is {} bytes{}", bytes,
            options_.limit_bytes,
            most < options_.limit_bytes ? fmt::format(", at most {} bytes at once", most) : ""),
        {}};
  }
  const std::uint64_t unit = options_.exact ? 1 : options_.alignment;
  const std::uint64_t size = (bytes + unit - 1) / unit * unit;

  auto found = free_.lower_bound({size, 0, 0, nullptr});
  const bool reused = found != free_.end();
  if (!reused) {
    const auto slab = grow(size);
    if (!slab) return slab.failure();
    found = free_.find({(*slab)->size, (*slab)->serial, 0, *slab});
  }
  const FreeRange range = *found;
  remove_free(*range.slab, range.offset, range.size);
  if (range.size > size) add_free(*range.slab, range.offset + size, range.size - size);

  statistics_.in_use_bytes += size;
  statistics_.peak_bytes = std::max(statistics_.peak_bytes, statistics_.in_use_bytes);
  ++statistics_.allocations;
  if (reused) ++statistics_.reuses;
  return Block{range.slab, range.slab->chunk.get(), range.offset, size};
}

Result<MemoryPool::Slab*> MemoryPool::grow(std::uint64_t bytes) {
  const std::uint64_t shared = std::min(options_.chunk_bytes, options_.max_chunk_bytes);
  std::uint64_t size = bytes > shared / 2 || options_.exact ? bytes : shared;
  const auto fits = [&] {
    return size <= options_.limit_bytes &&
           statistics_.reserved_bytes <= options_.limit_bytes - size;
  };
  if (!fits()) trim();
  if (!fits()) size = bytes;  // no room for a whole shared chunk
  if (!fits()) {
    return Failure{Status::out_of_memory,
                   fmt::format("{} bytes were asked for, {} of the device's {} bytes are in use",
                               bytes, statistics_.reserved_bytes, options_.limit_bytes),
                   {}};
  }
  auto chunk = source_->allocate(size);
  if (!chunk && chunk.failure().status == Status::out_of_memory) {
    trim();
    size = bytes;
    chunk = source_->allocate(size);
  }
  if (!chunk) return chunk.failure();
  Slab& slab = slabs_.emplace_back();
  slab.serial = next_serial_++;
  slab.size = size;
  slab.chunk = std::move(chunk).value();
  statistics_.reserved_bytes += size;
  add_free(slab, 0, size);
  return &slab;
}

void MemoryPool::release(const Block& block) {
  Slab& slab = *block.slab;
  std::uint64_t offset = block.offset;
  std::uint64_t size = block.size;
  const auto after = slab.free.lower_bound(block.offset);
  if (after != slab.free.begin()) {
    const auto [before, length] = *std::prev(after);
    if (before + length == block.offset) {
      remove_free(slab, before, length);
      offset = before;
      size += length;
    }
  }
  if (after != slab.free.end() && after->first == block.offset + block.size) {
    size += after->second;
    remove_free(slab, after->first, after->second);
  }
  add_free(slab, offset, size);
  statistics_.in_use_bytes -= block.size;
  if (options_.exact) trim();
}

void MemoryPool::trim() {
  for (auto slab = slabs_.begin(); slab != slabs_.end();) {
    if (!slab->unused()) {
      ++slab;
      continue;
    }
    remove_free(*slab, 0, slab->size);
    statistics_.reserved_bytes -= slab->size;
    slab = slabs_.erase(slab);
  }
}

}  // namespace greta::device
