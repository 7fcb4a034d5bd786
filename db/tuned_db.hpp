#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/comparison.hpp"
#include "db/damage.hpp"
#include "db/safety.hpp"
#include "db/trial.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::db {

struct Merge;

/// Where a result came from; stored with every session.
struct Provenance {
  std::string greta_version;
  std::string template_key;
  std::string driver;
  std::string compiler;
  std::string started_utc;  ///< ISO 8601, "2026-11-20T12:00:00Z"
};

/// What a tuning session was asked to do; stored with it.
struct SessionRecord {
  DeviceInfo device;
  Problem problem;
  Provenance provenance;
  std::string strategy;
  std::string budget;
  std::uint64_t seed = 0;
  bool cold = true;
  std::string command;  ///< free text for people
};

/// A candidate that can't be told apart from the winner.
struct Tie {
  Config config;
  double ratio_to_winner = 1;  ///< its time over the winner's
};

/// The certified outcome of a session for one problem on one device.
struct Winner {
  Config config;
  bool is_default = false;                   ///< nothing beat the default for sure
  double default_us = 0;                     ///< the default, timed in the same rounds
  double speedup = 1;                        ///< default time over winner time
  double speedup_low = 1, speedup_high = 1;  ///< its confidence interval
  double confidence = 0.95;
  int rounds = 0;           ///< interleaved rounds behind the interval
  Measurement measurement;  ///< the certifying rounds: raw samples, clocks, flush bytes, rounds
                            ///< dropped for drift
  std::vector<double> default_samples_us;  ///< the default's times in the same rounds
  double roofline = 0;  ///< share of the roofline, 0…1; 0 where ceilings are unknown
  Verdict verdict;      ///< of the check after timing, on new inputs
  std::vector<KernelFigures> kernels;  ///< of its kernels
  bool cold = true;
  std::vector<Tie> ties;
};

/// What the winner of the nearest other shape costs for a problem.
struct Regret {
  enum class Source {
    same,     ///< it is this problem's winner as well
    tie,      ///< it is one of its ties
    trials,   ///< from recorded times of searches in the same circumstances
    measured  ///< in interleaved rounds with the winner
  };
  std::string neighbour;  ///< dimensions of the other shape: "m=4096 n=4096 k=2048"
  double ratio = 1;       ///< the time of its winner here over that of this problem's winner
  Source source = Source::same;
};

/// A winner as it is stored, with its circumstances.
struct StoredWinner {
  Problem problem;
  DeviceInfo device;         ///< as last seen
  std::string device_id;     ///< "vulkan:0" at the time
  std::int64_t session = 0;  ///< 0: it came from another database
  Provenance provenance;
  Winner winner;
  std::optional<Regret> regret;  ///< nothing where nobody looked
};

/// A device as it was last seen.
struct StoredDevice {
  DeviceInfo info;
  std::string first_seen_utc;
  std::string last_seen_utc;
};

/// One run of the tuner.
struct StoredSession {
  std::int64_t id = 0;
  Problem problem;
  std::string device_fingerprint;
  std::string device_id;
  Provenance provenance;
  std::string strategy;
  std::string budget;
  bool cold = true;
  std::optional<std::string> outcome;  ///< nothing: it is running, or was killed
  std::int64_t trials = 0;
};

/// What is known of a problem on one card: its winner through each API that was tuned.
struct CardWinners {
  std::vector<StoredWinner> winners;    ///< the fastest first
  std::vector<Comparison> comparisons;  ///< of the first with each other, in their order

  /// Whether the first is faster than all others for sure.
  bool sure() const;
};

/// A measured ceiling of a device: "copy_gbps" (read plus written bytes), "fma_f32_gflops".
struct Ceiling {
  std::string kind;
  double value = 0;
  double spread_percent = 0;
  std::string driver;
  std::string measured_utc;
};

/// What another library needs for a problem.
struct Peer {
  Problem problem;
  std::string library;        ///< "PyTorch TunableOp"
  std::string circumstances;  ///< its versions and device, in its words
  std::string solution;       ///< its name for the kernel it chose; empty where it chose none yet
  double us = 0;              ///< NaN where it says none
  std::string imported_utc;
};

/// Everything of a database but its raw trials and sessions: what is merged, and what ships.
struct Contents {
  struct DeviceCeiling {
    std::string device;  ///< fingerprint
    Ceiling ceiling;
  };
  struct DeviceUnsafe {
    std::string device;  ///< fingerprint
    UnsafePart part;
  };
  std::vector<StoredDevice> devices;
  std::vector<StoredWinner> results;  ///< of all circumstances
  std::vector<DeviceCeiling> ceilings;
  std::vector<Peer> peers;
  std::vector<DeviceUnsafe> unsafe{};  ///< with all drivers
};

/// What to remove from a database.
struct PruneRequest {
  std::vector<StoredWinner> winners;    ///< these results
  std::vector<std::int64_t> trials_of;  ///< raw trials of these sessions
  bool only_failed = false;             ///< of those only the failed ones
  bool damaged = false;                 ///< all damaged rows, and those that refer to them
};

/// What was removed; sessions and devices are those that nothing referred to any more.
struct Pruned {
  std::int64_t winners = 0, trials = 0, sessions = 0, devices = 0, damaged = 0;
  std::vector<DamagedRow> orphans;  ///< the sound rows that referred to damaged ones
};

/// A SQLite database of trials and winners. Several processes may write one file at once. Every
/// call commits before it returns, so a killed process loses at most the trial in flight.
/// Errors (corrupt file, newer schema, full disk, read-only folder) throw Error with one line that
/// names the file and the cause; nothing existing is overwritten.
///
/// A row that is not as it was written, by its checksum, is damaged: no call but damaged() and
/// check() knows of it, and none makes it sound. What is stored under its key replaces it.
class TunedDb {
 public:
  enum class Mode { read_write, read_only };

  /// Opens a database; read_write creates it (and its folder) where there is none and migrates an
  /// older schema, read_only fails when it does not exist.
  static TunedDb open(const std::filesystem::path& file, Mode mode);
  /// Schema version that this build writes.
  static int schema_version();

  TunedDb(TunedDb&&) noexcept;
  TunedDb& operator=(TunedDb&&) noexcept;
  ~TunedDb();

  const std::filesystem::path& file() const;
  /// Whether it is one that ships: complete, without raw trials, and never written again.
  bool shipped() const;

  std::int64_t begin_session(const SessionRecord& session);
  void add_trial(std::int64_t session, const Trial& trial);
  /// Marks how a session ended ("done", "failed", …). A session without it was killed.
  void end_session(std::int64_t session, const std::string& outcome);

  /// Stores a session's winner as the answer for its problem, cold/warm, device, driver, compiler
  /// and template. Replaces an earlier one of the same circumstances.
  void set_winner(std::int64_t session, const Winner& winner);
  /// The latest one, whatever its driver, compiler and template.
  std::optional<StoredWinner> find_winner(const std::string& device_fingerprint,
                                          const std::string& problem_key, bool cold) const;
  /// The latest one of each problem, device and cold/warm.
  std::vector<StoredWinner> winners() const;
  /// Those of all circumstances; of one problem and device the latest first.
  std::vector<StoredWinner> results() const;

  /// Stores how winners of two sessions compare; they must be of one problem, both cold or both
  /// warm. Replaces an earlier comparison of the same two.
  void set_comparison(const Comparison& comparison);
  /// The winners of a problem on the card that `device` is, whatever API they were found through:
  /// compared in alternating turns where that was done, else by their certified intervals.
  CardWinners find_winners_of_card(const DeviceInfo& device, const std::string& problem_key,
                                   bool cold) const;
  /// All winners, by problem, cold or warm, and card.
  std::vector<CardWinners> winners_by_card() const;

  void set_ceilings(const DeviceInfo& device, const std::vector<Ceiling>& ceilings);
  std::vector<Ceiling> ceilings(const std::string& device_fingerprint) const;

  /// Health checks that a device fails with the driver it has; `check` and what it says replace
  /// what was stored of it.
  void set_unsafe(const DeviceInfo& device, const UnsafePart& part);
  /// The device passes this check with the driver it has.
  void clear_unsafe(const DeviceInfo& device, const std::string& check);
  /// What failed on this device with the driver it has.
  std::vector<UnsafePart> unsafe(const DeviceInfo& device) const;

  /// The fastest configurations of all sessions for a device, problem and cold/warm, best first;
  /// what ran on a stand-in counts only where nothing ran at full size.
  std::vector<Config> fastest_configs(const std::string& device_fingerprint,
                                      const std::string& problem_key, bool cold, int most) const;

  /// Content keys of a configuration's kernels when it was last tried for a result's problem in its
  /// circumstances, as Trial::content_keys; nothing where no trial is recorded.
  std::optional<std::string> content_keys(const StoredWinner& result, const Config& config) const;
  /// The recorded time of a configuration for a result's problem in its circumstances, at full
  /// size: the least median of all trials; nothing where there is none.
  std::optional<double> recorded_us(const StoredWinner& result, const Config& config) const;
  /// Stores the regrets of these results, which must be there.
  void set_regrets(const std::vector<StoredWinner>& results);

  /// All trials of a session, in order.
  std::vector<Trial> trials(std::int64_t session) const;

  Contents contents() const;
  /// Writes rows, in one transaction; each replaces what has its key. Devices that results and
  /// ceilings name must be among them or in the database.
  void write(const Contents& contents);
  /// Joins the other database's contents into this one, in one transaction; see db/merge.hpp.
  Merge merge(const Contents& theirs);
  /// Writes a compact database that is only read, without raw samples, to `file`, which appears
  /// complete or not at all and replaces what was there. Throws Error.
  static void ship(const Contents& contents, const std::filesystem::path& file);

  /// Removes rows. `rehearse`: only says what would go.
  Pruned prune(const PruneRequest& request, bool rehearse);
  /// Gives the room of removed rows back to the file system.
  void compact();

  std::vector<StoredSession> sessions() const;
  std::vector<StoredDevice> devices() const;

  struct Counts {
    std::int64_t devices = 0, problems = 0, sessions = 0, trials = 0, winners = 0;
  };
  Counts counts() const;
  /// What is left out, because it is damaged or refers to something that is.
  std::vector<DamagedRow> damaged() const;
  /// The damaged rows that calls of this object, opened for writing, have replaced or removed.
  std::vector<DamagedRow> discarded() const;
  /// Reads what calls of this object have written from the file that has its name now, as another
  /// process would. Throws Error where anything is neither there as it was written nor replaced by
  /// another process: the file was overwritten meanwhile.
  void confirm() const;

  /// SQLite's own integrity and foreign-key checks, every row's checksum, and the manifest of a
  /// shipped database; empty when sound, else one line per problem.
  std::vector<std::string> check() const;

 private:
  struct Impl;
  explicit TunedDb(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace greta::db
