#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device/hip/host/elf_image.hpp"
#include "runtime/device/hip/host/language/abi.hpp"
#include "runtime/device/result.hpp"

namespace greta::device::hip::host {

/// A kernel's library, loaded once for each OS thread that runs blocks of it, so that what is
/// __shared__ is a plain static variable of each copy.
class Library {
 public:
  /// Fails with `unavailable` and the loader's message.
  static Result<std::shared_ptr<Library>> load(std::vector<std::byte> image);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const ElfSummary& summary() const { return summary_; }
  /// The kernel's name and arguments.
  const greta_host::Entry& entry() const { return *entry_; }
  /// The copy of OS thread number `worker`. Thread-safe.
  Result<const greta_host::Entry*> copy(unsigned worker);

 private:
  struct Copy {
    int file = -1;  ///< sanitizers read it when they report
    void* handle = nullptr;
    const greta_host::Entry* entry = nullptr;
  };

  Library() = default;
  Result<Copy> load_copy() const;

  std::vector<std::byte> image_;
  ElfSummary summary_;
  const greta_host::Entry* entry_ = nullptr;  ///< of the first copy
  std::mutex mutex_;
  std::deque<Copy> copies_;  ///< by worker; what nobody used has no handle
};

}  // namespace greta::device::hip::host
