#pragma once

#include <string>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Limits how many kernels are compiled at the same time by several processes: each compilation
/// holds one of a number of slots, which are locks on bytes of a file. The system releases the
/// slot of a process that dies.
class CompileSlots {
 public:
  /// A slot. It is free again when this object ends.
  class Slot {
   public:
    explicit Slot(int descriptor) : descriptor_(descriptor) {}
    ~Slot();
    Slot(Slot&& other) noexcept;
    Slot& operator=(Slot&&) = delete;

   private:
    int descriptor_;
  };

  /// Makes `count` slots, which other processes of this user join by path(). Throws Error if the
  /// system has no memory for a file.
  explicit CompileSlots(int count);
  /// Joins the slots of another process. An empty path: no limit.
  CompileSlots(std::string path, int count);
  ~CompileSlots();
  CompileSlots(const CompileSlots&) = delete;
  CompileSlots& operator=(const CompileSlots&) = delete;

  /// Returns the file of the locks. It exists as long as the object that made it.
  const std::string& path() const { return path_; }
  int count() const { return count_; }

  /// Waits for a free slot. There is no limit once the process that made the slots has ended.
  Slot take() const;

 private:
  std::string path_;
  int count_;
  int file_ = -1;
};

}  // namespace greta::tuner
