#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/hip/host/elf_image.hpp"
#include "runtime/device/hip/host/language/abi.hpp"
#include "runtime/device/result.hpp"

namespace greta::device::hip::host {

/// A kernel's library. It is loaded once for each OS thread that runs its blocks, so that
/// __shared__ variables are plain static variables of each copy.
class Library {
 public:
  /// Loads a library. Fails with `unavailable` and the loader's message.
  static Result<std::shared_ptr<Library>> load(std::vector<std::byte> image);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const ElfSummary& summary() const { return summary_; }
  /// Returns the kernel's name and arguments.
  const greta_host::Entry& entry() const { return *entry_; }
  /// Returns the copy for OS thread number `worker`, which it loads on first use, with the
  /// present contents of constant memory. Thread-safe.
  Result<const greta_host::Entry*> copy(unsigned worker);
  /// Returns where a __constant__ variable is written for all copies; empty if there is none.
  std::span<std::byte> constant(std::string_view name) const;

 private:
  struct Copy {
    int file = -1;  ///< kept open for sanitizers' reports
    void* handle = nullptr;
    const greta_host::Entry* entry = nullptr;
    std::byte* base = nullptr;  ///< what the loader adds to addresses in the library
  };

  Library() = default;
  Result<Copy> load_copy() const;

  std::vector<std::byte> image_;
  ElfSummary summary_;
  const greta_host::Entry* entry_ = nullptr;  ///< entry of the first copy
  std::mutex mutex_;
  std::deque<Copy> copies_;  ///< indexed by worker; unused ones have no handle
};

}  // namespace greta::device::hip::host
