#pragma once

#include <memory>
#include <string>
#include <vector>

#include "db/carried_binary.hpp"
#include "db/carried_kernel.hpp"
#include "db/lookup/answer.hpp"
#include "db/lookup/lookup_files.hpp"
#include "db/lookup/use_rule.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::db {

struct LookupOptions {
  bool cold = true;           ///< use winners timed with cold caches, otherwise warm ones
  bool allow_unsafe = false;  ///< also use parts that failed a health check (greta-bench doctor)
  Catalog catalog = Catalog::built_in();  ///< the available operations
};

/// A configuration of one variant, and how it is known.
struct BestOfVariant {
  enum class Source { recorded, nearest_shape, same_architecture, predicted };
  Config config;
  Source source = Source::predicted;
};
/// Returns "recorded", "nearest shape", "same architecture" or "untuned".
std::string_view to_string(BestOfVariant::Source source);

/// Selects the configuration to run for a problem on one device.
///
/// It tries, in this order: the winner of this problem on this device; that of the nearest other
/// shape on this device; those of other devices of this architecture; the static prior's choice,
/// for operations whose default is measured to cost more; the operation's default. A configuration
/// that was certified for another shape, device or version is checked against this problem's
/// constraints. If it violates one, the next nearest is tried. Shapes beyond most_shape_distance
/// are ignored. A problem that permits something (Attribute::permission) and has none of these
/// winners has those of the problem that doesn't. On NVIDIA GPUs through HIP, a winner of the
/// latter or of another shape is ignored if the static prior predicts it to take more than 1.05
/// times as long as its choice. If nothing beat the default for another shape, the answer is this
/// problem's default (docs/lookup.md has the figures). The index of winners is read when a look-up
/// is opened, each winner when it is first needed.
///
/// Each step considers the winners of all databases. Of the same problem and device, the winner of
/// the first database in the order of LookupFiles is used.
///
/// Thread-safe. An answer is computed on first use and does not change as long as the look-up
/// exists. Finding it again takes a shared lock and allocates nothing.
class Lookup {
 public:
  /// Opens a look-up. Throws Error for a file of the user or of the application that can't be read,
  /// and with Status::unavailable for a device that failed its health checks, unless
  /// `allow_unsafe`. A shipped file that can't be read is left out, which unreadable() reports.
  static Lookup open(const DeviceInfo& device, const LookupFiles& files,
                     const LookupOptions& options = {});
  Lookup(Lookup&&) noexcept;
  Lookup& operator=(Lookup&&) noexcept;
  ~Lookup();

  /// Returns the answer for a problem, which is valid as long as this look-up. Throws Error for a
  /// problem that its operation rejects, or for which no configuration is valid on this device.
  const Answer& find(const Problem& problem) const;

  /// Returns the best known configuration of a variant for a problem, among those in which some
  /// parameters have given values: the fastest that was recorded for this problem on this device,
  /// certified or not; the winner of the nearest shape or another device, as find() would; the best
  /// known one of the variant with these values in place of its own; what find() returns; what the
  /// static prior predicts of the variant's defaults, else of its space. Fails with `constraints`
  /// and one line that names the constraint if the values are not valid together for the problem on
  /// this device, with `invalid_argument` for a problem or variant that does not exist.
  Result<BestOfVariant> best_of(const Problem& problem, std::string_view variant,
                                const UseValues& values = {}) const;
  /// Returns the answer by a rule, for a problem that it matches. Fails like best_of(); the message
  /// begins with the rule.
  Result<Answer> forced(const UseRule& rule, const Problem& problem) const;

  /// Returns the user's kernel of this name that the first database with it carries, or nothing.
  std::optional<CarriedKernel> kernel(const std::string& name) const;
  /// Returns the compiled kernel with this content key (KernelSource::content_key of no compiler)
  /// for the first of these targets (binary_targets()) that a database carries, or nothing. Its
  /// hash was checked; a damaged one is left out, which unreadable() reports.
  std::optional<CarriedBinary> binary(const std::string& content,
                                      const std::vector<std::string>& targets) const;
  /// Returns whether a database carries compiled kernels for one of these targets, damaged or not.
  bool has_binaries(const std::vector<std::string>& targets) const;
  /// Returns the answer for the problem if the match is exact, else that for the problem that
  /// represents its bucket, so that problems of a bucket share kernels. Throws Error like find().
  Answer answer(const Problem& problem) const;
  /// Returns LookupOptions::catalog.
  const Catalog& catalog() const;
  /// Returns what can be asked: the operations of catalog(), and the chains, whose answers are
  /// names of alternatives (kernels/chains/chains.hpp).
  const Catalog& questions() const;
  /// Returns the device without the features that failed their health checks. Answers are valid for
  /// it, and plans must be made with it.
  const DeviceInfo& device() const;
  /// Returns a line for each shipped database and each item of a database that was ignored so far
  /// because it could not be read. It is empty for undamaged ones.
  std::vector<std::string> unreadable() const;

 private:
  struct Impl;
  explicit Lookup(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace greta::db
