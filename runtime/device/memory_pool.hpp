#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "runtime/device/device.hpp"
#include "runtime/device/result.hpp"

namespace greta::device {

/// A large piece of memory obtained from the driver. The destructor returns it.
class MemoryChunk {
 public:
  virtual ~MemoryChunk() = default;
};

/// The source of a pool's chunks.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual Result<std::unique_ptr<MemoryChunk>> allocate(std::uint64_t bytes) = 0;
};

/// Sub-allocates chunks of memory. Small requests share chunks, and large ones get a chunk of their
/// own. A released block is merged with its free neighbours and reused, best fit first. Not
/// thread-safe.
class MemoryPool {
 public:
  struct Options {
    std::uint64_t chunk_bytes = 64ULL << 20;     ///< size of a shared chunk
    std::uint64_t alignment = 256;               ///< applies to every block's offset and size
    std::uint64_t limit_bytes = UINT64_MAX;      ///< for all chunks together
    std::uint64_t max_chunk_bytes = UINT64_MAX;  ///< the driver's limit for one allocation
    /// Makes each block a chunk of its own of exactly the requested size, so that memory checkers
    /// see its ends.
    bool exact = false;
  };

  struct Slab;

  /// A part of a chunk that is in use.
  struct Block {
    Slab* slab = nullptr;
    MemoryChunk* chunk = nullptr;
    std::uint64_t offset = 0;  ///< from the chunk's start
    std::uint64_t size = 0;    ///< rounded up to the alignment, unless exact
  };

  MemoryPool(std::unique_ptr<MemorySource> source, const Options& options);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Allocates a block. Fails with `invalid_argument` for 0 bytes, and with `out_of_memory` and a
  /// message that gives the requested and the available size.
  Result<Block> allocate(std::uint64_t bytes);
  void release(const Block& block);
  /// Returns chunks without any block in use to the driver.
  void trim();
  const MemoryStatistics& statistics() const { return statistics_; }

 private:
  struct FreeRange {
    std::uint64_t size = 0;
    std::uint64_t serial = 0;
    std::uint64_t offset = 0;
    Slab* slab = nullptr;
  };
  struct Smaller {
    bool operator()(const FreeRange& a, const FreeRange& b) const {
      return std::tie(a.size, a.serial, a.offset) < std::tie(b.size, b.serial, b.offset);
    }
  };

  Result<Slab*> grow(std::uint64_t bytes);
  void add_free(Slab& slab, std::uint64_t offset, std::uint64_t size);
  void remove_free(Slab& slab, std::uint64_t offset, std::uint64_t size);

  std::unique_ptr<MemorySource> source_;
  Options options_;
  std::list<Slab> slabs_;
  std::set<FreeRange, Smaller> free_;  ///< ordered by size, for best fit
  std::uint64_t next_serial_ = 0;
  MemoryStatistics statistics_;
};

}  // namespace greta::device
