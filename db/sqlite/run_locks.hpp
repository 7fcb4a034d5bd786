#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// Tells running runs of a database from those whose process ended, in whatever way: a process
/// holds a lock on a byte of the file "tuned.db-runs" for each of its runs, which the system
/// releases with the process. The file is empty, and exists while a run is in progress.
class RunLocks {
 public:
  explicit RunLocks(const std::filesystem::path& database);
  ~RunLocks();
  RunLocks(RunLocks&& other) noexcept;
  RunLocks& operator=(RunLocks&&) = delete;

  /// Takes a run. Returns false if another process, or another object of this one, has it. Where
  /// files can't be locked, every run can be taken.
  bool take(std::int64_t run);
  void release(std::int64_t run);

 private:
  bool open();
  void close();

  std::filesystem::path file_;
  std::set<std::int64_t> held_;
  int descriptor_ = -1;
};

}  // namespace greta::db
