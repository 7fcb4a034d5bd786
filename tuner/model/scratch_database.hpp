#pragma once

#include <filesystem>

#include "db/tuned_db.hpp"

namespace greta::tuner::model {

/// A temporary database, which is removed with this object together with SQLite's files beside it.
class ScratchDatabase {
 public:
  explicit ScratchDatabase(std::filesystem::path file) : file_(std::move(file)) { remove(); }
  ~ScratchDatabase() { remove(); }
  ScratchDatabase(const ScratchDatabase&) = delete;
  ScratchDatabase& operator=(const ScratchDatabase&) = delete;

  const std::filesystem::path& file() const { return file_; }
  void write(const Contents& contents) const;

 private:
  void remove() const;
  std::filesystem::path file_;
};

/// Returns a database's contents; nothing if there is no file.
Contents contents_of(const std::filesystem::path& file);

/// Returns a database's contents with one more result.
Contents with(Contents contents, const StoredWinner& winner);

}  // namespace greta::tuner::model
