#include "tests/device/hip/fake/fake_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "tests/device/hip/fake/fake_emulator.hpp"
#include "tests/device/hip/fake/fake_stream.hpp"
#include "tests/layers.hpp"

namespace greta::test {

namespace {

constexpr std::size_t page = 4096, alignment = 256;
constexpr std::size_t guard = 16 * page;
constexpr std::size_t poisoned_bytes = std::size_t{16} << 20;  // larger allocations start as zeros

std::map<std::uintptr_t, Allocation> allocations;  ///< by address

/// The address range, and the library's mapping of the same bytes.
class Range {
 public:
  Range() {
    int file = -1;
    void* wanted = nullptr;
    if (Emulator* const emulator = Emulator::instance()) {
      file = emulator->memory_file();
      wanted = emulator->memory_base();
      size_ = emulator->memory_size();
    } else {
      file = memfd_create("greta-fake-hip", MFD_CLOEXEC);
      if (file < 0 || ftruncate(file, static_cast<off_t>(size_)) != 0) return;
    }
    file_ = file;
    const int fixed = wanted != nullptr ? MAP_FIXED_NOREPLACE : 0;
    base_ = map(wanted, PROT_NONE, fixed);
    if (wanted != nullptr && base_ != wanted) base_ = nullptr;
    bytes_ = map(nullptr, PROT_READ | PROT_WRITE, 0);
  }

  /// Returns memory for an allocation that ends at a page boundary; nullptr if there is none.
  std::byte* take(std::size_t bytes, bool host_visible) {
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    const std::size_t pages = pages_of(bytes);
    if (base_ == nullptr || bytes_ == nullptr || pages > size_ - next_ - 2 * guard) return nullptr;
    const std::size_t offset = next_ + guard;
    next_ = offset + pages;
    if (host_visible) mprotect(base_ + offset, pages, PROT_READ | PROT_WRITE);
    if (Emulator* const emulator = Emulator::instance()) emulator->allow(offset, pages, bytes);
    std::byte* const start = base_ + offset + (pages - rounded);
    if (bytes <= poisoned_bytes) std::memset(accessible(start), 0xff, bytes);
    return start;
  }

  void give_back(const Allocation& allocation) {
    const std::size_t pages = pages_of(allocation.bytes);
    const auto at = static_cast<std::size_t>(allocation.start - base_);
    const std::size_t offset = at / page * page;
    mprotect(base_ + offset, pages, PROT_NONE);
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(pages));
    if (Emulator* const emulator = Emulator::instance()) emulator->forbid(offset, pages);
  }

  std::byte* accessible(const void* pointer) const {
    return bytes_ + (static_cast<const std::byte*>(pointer) - base_);
  }

 private:
  static std::size_t pages_of(std::size_t bytes) {
    return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
  }
  std::byte* map(void* wanted, int access, int flags) const {
    void* const at = mmap(wanted, size_, access, MAP_SHARED | MAP_NORESERVE | flags, file_, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
  }

  int file_ = -1;
  std::size_t size_ = std::size_t{1} << 38;
  std::byte* base_ = nullptr;
  std::byte* bytes_ = nullptr;
  std::size_t next_ = 0;
};

Range& range() {
  static auto* const made = new Range;
  return *made;
}

const Allocation* find(const void* pointer) {
  const auto after = allocations.upper_bound(reinterpret_cast<std::uintptr_t>(pointer));
  if (after == allocations.begin()) return nullptr;
  const Allocation& found = std::prev(after)->second;
  const auto past = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - found.start);
  return past <= found.bytes && found.device == current_device ? &found : nullptr;
}

int allocate(const Call& call, void** pointer, std::size_t bytes, const char* ended_by) {
  if (call.error() != success) return call.error();
  if (bytes == 0) return call.misused("0 bytes");
  std::size_t used = 0;
  for (const auto& [address, allocation] : allocations) {
    if (allocation.device == current_device) used += allocation.bytes;
  }
  if (used + bytes > fake.memory_bytes) return out_of_memory;
  std::byte* const start = range().take(bytes, std::strcmp(ended_by, "hipHostFree") == 0);
  if (start == nullptr) return out_of_memory;
  allocations[reinterpret_cast<std::uintptr_t>(start)] = {start, bytes, current_device};
  add_object(start, ended_by);
  *pointer = start;
  return success;
}

/// Waits for the device's work, like the real runtimes.
int release(const Call& call, void* pointer, const char* ended_by) {
  if (call.error() != success) return call.error();
  if (!finish_all(call)) return invalid_value;
  if (!remove_object(call, pointer, ended_by)) return invalid_value;
  const auto found = allocations.find(reinterpret_cast<std::uintptr_t>(pointer));
  range().give_back(found->second);
  allocations.erase(found);
  return success;
}

}  // namespace

std::byte* bytes_at(const Call& call, const void* pointer, std::size_t bytes) {
  const Allocation* const found = find(pointer);
  if (found == nullptr ||
      bytes > static_cast<std::size_t>(found->start + found->bytes -
                                       static_cast<const std::byte*>(pointer))) {
    call.misused("bytes outside of any allocation of the device");
    return nullptr;
  }
  return range().accessible(pointer);
}

bool is_memory(const void* pointer) {
  return find(pointer) != nullptr;
}

void free_all(int device) {
  for (auto at = allocations.begin(); at != allocations.end();) {
    const bool there = at->second.device == device;
    if (there) range().give_back(at->second);
    at = there ? allocations.erase(at) : std::next(at);
  }
}

}  // namespace greta::test

using namespace greta::test;

extern "C" {

int NAME(hipMalloc, cuMemAlloc_v2)(void** pointer, std::size_t bytes) {
  return allocate(Call("hipMalloc"), pointer, bytes, "hipFree");
}
int NAME(hipHostMalloc, cuMemHostAlloc)(void** pointer, std::size_t bytes, unsigned flags) {
  const Call call("hipHostMalloc");
  if (flags != 2) return call.misused("not hipHostMallocMapped");
  return allocate(call, pointer, bytes, "hipHostFree");
}
int NAME(hipFree, cuMemFree_v2)(void* pointer) {
  return release(Call("hipFree"), pointer, "hipFree");
}
int NAME(hipHostFree, cuMemFreeHost)(void* pointer) {
  return release(Call("hipHostFree"), pointer, "hipHostFree");
}

}  // extern "C"
