#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/lookup/answer.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::db {

/// The databases that a look-up reads, each of which must exist where it is named.
struct LookupFiles {
  std::optional<std::filesystem::path> own;      ///< the user's: what it knows exactly wins
  std::optional<std::filesystem::path> shipped;  ///< the one that comes with an application
};

struct LookupOptions {
  bool cold = true;           ///< use winners that were timed with cold caches, else with warm ones
  bool allow_unsafe = false;  ///< also use what failed its health check (greta-bench doctor)
  Catalog catalog = Catalog::built_in();  ///< the operations that are known
};

/// Says which configuration to run for a problem on one device.
///
/// In order: the winner of this problem on this device; that of the nearest other shape on this
/// device; those of other devices of this architecture; the operation's default. What was certified
/// for another shape, device or version is checked against this problem's constraints, and where it
/// breaks one, the next nearest is tried. Shapes beyond most_shape_distance do not count; where
/// nothing beat the default for another shape, the answer is this problem's default
/// (docs/lookup.md has the figures). A look-up is immutable: it holds what the databases said
/// when it was opened.
///
/// Safe to use from several threads. An answer is computed the first time, and kept as long as the
/// look-up; finding it again takes a shared lock and allocates nothing.
class Lookup {
 public:
  /// Throws Error for a file that can't be read, and with Status::unavailable for a device that
  /// failed its health checks, unless `allow_unsafe`.
  static Lookup open(const DeviceInfo& device, const LookupFiles& files,
                     const LookupOptions& options = {});
  Lookup(Lookup&&) noexcept;
  Lookup& operator=(Lookup&&) noexcept;
  ~Lookup();

  /// The answer for a problem; valid as long as this look-up. Throws Error for a problem that its
  /// operation refuses, or for which no configuration at all is valid on this device.
  const Answer& find(const Problem& problem) const;

  /// LookupOptions::catalog.
  const Catalog& catalog() const;
  /// The device as it may be used: without the features that failed their health checks. Answers
  /// are valid for it, and plans are to be made with it.
  const DeviceInfo& device() const;
  /// What of the databases could not be read so far and was left out, a line each; empty for sound
  /// ones.
  std::vector<std::string> unreadable() const;

 private:
  struct Impl;
  explicit Lookup(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace greta::db
