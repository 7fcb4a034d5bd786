#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/carried_binary.hpp"
#include "db/carried_kernel.hpp"
#include "db/comparison.hpp"
#include "db/counters.hpp"
#include "db/damage.hpp"
#include "db/energy.hpp"
#include "db/finalist.hpp"
#include "db/pin.hpp"
#include "db/run.hpp"
#include "db/safety.hpp"
#include "db/trial.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::db {

struct Merge;
struct HistoryMerge;

/// The origin of a result, which is stored with every session.
struct Provenance {
  std::string greta_version;
  std::string template_key;
  std::string driver;
  std::string compiler;
  std::string started_utc;  ///< ISO 8601, "2026-11-20T12:00:00Z"
};

/// The request of a tuning session, which is stored with it.
struct SessionRecord {
  DeviceInfo device;
  Problem problem;
  Provenance provenance;
  std::string strategy;
  std::string budget;
  std::uint64_t seed = 0;
  bool cold = true;
  std::string command;      ///< free text, for readers only
  std::int64_t run = 0;     ///< id of the run that it belongs to; 0: none, so it can't be resumed
  bool for_energy = false;  ///< the objective is the energy of a launch, not its time
};

/// A candidate that can't be distinguished from the winner.
struct Tie {
  Config config;
  double ratio_to_winner = 1;  ///< its time divided by the winner's
};

/// The certified result of a session for one problem on one device.
struct Winner {
  Config config;
  bool is_default = false;                   ///< nothing was significantly faster than the default
  double default_us = 0;                     ///< time of the default in the same rounds
  double speedup = 1;                        ///< default's time divided by the winner's
  double speedup_low = 1, speedup_high = 1;  ///< confidence interval of the speed-up
  double confidence = 0.95;
  int rounds = 0;           ///< interleaved rounds used for the interval
  Measurement measurement;  ///< certifying rounds: raw samples, clocks, flush bytes, rounds dropped
                            ///< for drift
  std::vector<double> default_samples_us;  ///< the default's times in the same rounds
  double roofline = 0;  ///< fraction of the roofline, 0…1; 0 if ceilings are unknown
  Verdict verdict;      ///< from the check after timing, on new inputs
  std::vector<KernelFigures> kernels;  ///< statistics of its kernels
  bool cold = true;
  std::vector<Tie> ties;
  std::string card;  ///< UUID of the card that certified it; empty: unknown
};

/// Whether it is a configuration of a vendor's library (kernels::vendor_variant). Its compiler is
/// the library.
bool is_of_vendor(const Winner& winner);

/// Whether the ratio of a winner's time to the default's is known. Where the default failed, it is
/// not, whatever the figures of the speed-up say.
bool has_ratio(const Winner& winner);

/// The cost of using the winner of the nearest other shape for a problem.
struct Regret {
  enum class Source {
    same,     ///< it is also this problem's winner
    tie,      ///< it is one of its ties
    trials,   ///< from recorded times of searches in the same circumstances
    measured  ///< in interleaved rounds with the winner
  };
  std::string neighbour;  ///< dimensions of the other shape: "m=4096 n=4096 k=2048"
  double ratio = 1;       ///< its winner's time here divided by this problem's winner's
  Source source = Source::same;
};

/// A stored winner with its circumstances.
struct StoredWinner {
  Problem problem;
  DeviceInfo device;         ///< model, as last seen on any of its cards
  std::string device_id;     ///< id at that time, e.g. "vulkan:0"
  std::int64_t session = 0;  ///< 0: it comes from another database
  Provenance provenance;
  Winner winner;
  std::optional<Regret> regret;  ///< nothing if it was not determined
};

/// Returns the question that a result answers.
Question question_of(const StoredWinner& result);

/// A card of a device model, as it was last seen.
struct StoredCard {
  Card card;
  std::string first_seen_utc;
  std::string last_seen_utc;
};

/// A device model as it was last seen.
struct StoredDevice {
  DeviceInfo info;  ///< with the card that was seen last
  std::string first_seen_utc;
  std::string last_seen_utc;
  std::vector<StoredCard> cards{};  ///< by UUID; a card without one is not stored
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

/// The results of a problem on one hardware model: its winner through each API that was tuned.
struct HardwareWinners {
  std::vector<StoredWinner> winners;    ///< fastest first
  std::vector<Comparison> comparisons;  ///< the first compared with each other one, in their order

  /// Whether the first is significantly faster than all others.
  bool sure() const;
};

/// A measured ceiling of a card: "copy_gbps" (read plus written bytes), "fma_f32_gflops".
struct Ceiling {
  std::string kind;
  double value = 0;
  double spread_percent = 0;
  std::string driver;
  std::string measured_utc;
  std::string card{};  ///< UUID; empty: unknown
};

/// The time that another library needs for a problem.
struct Peer {
  Problem problem;
  std::string library;        ///< "PyTorch TunableOp"
  std::string circumstances;  ///< its versions and device, in its own format
  std::string solution;       ///< its name for the chosen kernel; empty if none is chosen yet
  double us = 0;              ///< NaN if it reports none
  std::string imported_utc;
};

/// The content of a database without raw trials and sessions: the part that is merged and shipped.
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
  std::vector<StoredWinner> results;  ///< for all circumstances
  std::vector<DeviceCeiling> ceilings;
  std::vector<Peer> peers;
  std::vector<DeviceUnsafe> unsafe{};  ///< for all drivers
  std::vector<CarriedKernel> kernels{};
  /// Written by ship() and write(). contents() has none, since they can be compiled again.
  std::vector<CarriedBinary> binaries{};
  std::vector<Pin> pins{};  ///< a user's own decisions: neither merged nor shipped
};

/// The rows to remove from a database.
struct PruneRequest {
  std::vector<StoredWinner> winners;    ///< these results
  std::vector<std::int64_t> trials_of;  ///< raw trials of these sessions
  bool only_failed = false;             ///< only the failed ones of these trials
  bool damaged = false;                 ///< all damaged rows, and rows that refer to them
};

/// The number of removed rows. Sessions and devices are those without any remaining reference.
struct Pruned {
  std::int64_t winners = 0, trials = 0, sessions = 0, devices = 0, damaged = 0;
  std::vector<DamagedRow> orphans;  ///< sound rows that referred to damaged ones
};

/// A SQLite database of trials and winners. Several processes may write one file concurrently, and
/// several threads may call one object: their calls run one after the other.
/// Every call commits before it returns, so a killed process loses at most the trial in flight.
/// Errors (corrupt file, newer schema, full disk, read-only folder) throw Error with a one-line
/// message that names the file and the cause. Nothing existing is overwritten.
///
/// A row that does not match its checksum is damaged. Only damaged() and check() report it; other
/// calls ignore it, and none makes it valid again. A new row with the same key replaces it.
class TunedDb {
 public:
  enum class Mode { read_write, read_only };

  /// Opens a database. read_write creates it (and its folder) if it does not exist, and migrates an
  /// older schema. read_only fails if it does not exist, and migrates a copy in memory of an older
  /// schema, which later changes of the file don't reach.
  static TunedDb open(const std::filesystem::path& file, Mode mode);
  /// Returns the schema version that this build writes.
  static int schema_version();

  TunedDb(TunedDb&&) noexcept;
  TunedDb& operator=(TunedDb&&) noexcept;
  ~TunedDb();

  const std::filesystem::path& file() const;
  /// Returns the schema version of the file.
  int file_schema() const;
  /// Whether this is a shipped database: complete, without raw trials, and never written again.
  bool shipped() const;

  /// Begins a run, which this object holds until it ends or this object is destroyed.
  std::int64_t begin_run(const RunRecord& run);
  void end_run(std::int64_t run);
  /// Returns the latest run of the request (and with this seed, if one is given) and takes hold of
  /// it, unless it finished or another process holds it.
  std::optional<UnfinishedRun> take_unfinished_run(const std::string& request,
                                                   std::optional<std::uint64_t> seed);
  /// Returns the last session of a run for a device and problem.
  std::optional<RunSession> find_session(std::int64_t run, const Question& question) const;
  /// Records that a session goes on, so that it has no outcome.
  void reopen_session(std::int64_t session);
  void set_plan(std::int64_t session, const SearchPlan& plan);

  std::int64_t begin_session(const SessionRecord& session);
  void add_trial(std::int64_t session, const Trial& trial);
  /// Stores the finalists of a session, with all their rounds.
  void set_finalists(std::int64_t session, const std::vector<Finalist>& finalists);
  /// Returns the finalists of a session, as stored; none for one of an older version.
  std::vector<Finalist> finalists(std::int64_t session) const;
  /// Records how a session ended ("done", "failed", …). A session without an outcome was killed.
  void end_session(std::int64_t session, const std::string& outcome);

  /// Stores a session's winner as the answer for its problem, cold/warm, device, driver, compiler
  /// and template. Replaces an earlier one for the same circumstances. Returns false, and changes
  /// nothing, if the problem's answer is pinned to another configuration.
  bool set_winner(std::int64_t session, const Winner& winner);
  /// Returns the winner of the device's driver and compiler as last seen, or as near to them as
  /// there is one; the latest of several. A date in the future counts as the earliest.
  std::optional<StoredWinner> find_winner(const std::string& device_fingerprint,
                                          const std::string& problem_key, bool cold) const;
  /// Returns the winners for all circumstances, in the order in which find_winner() prefers them.
  std::vector<StoredWinner> find_winners(const std::string& device_fingerprint,
                                         const std::string& problem_key, bool cold) const;
  /// Returns the winner that find_winner() does for each problem, device and cold/warm.
  std::vector<StoredWinner> winners() const;
  /// Returns the winners for all circumstances; those of a question as find_winners() does.
  std::vector<StoredWinner> results() const;

  /// Stores a session's answer for the least energy, beside the answer for the least time. Replaces
  /// an earlier one for the same circumstances.
  void set_energy_winner(std::int64_t session, const EnergyWinner& winner);
  /// Returns all answers for the least energy; the latest of a question first.
  std::vector<StoredEnergyWinner> energy_winners() const;

  /// Stores the counters of a configuration on the card of `device`, `us` µs being its time when
  /// nothing was counted (0: not timed). Replaces earlier ones of the same problem, configuration,
  /// device model and cold/warm.
  void set_counters(const DeviceInfo& device, const std::string& problem_key, const Config& config,
                    const Counters& counters, double us);
  /// Returns all counters, by problem, device and configuration.
  std::vector<StoredCounters> counters() const;

  /// Freezes an answer: until unpin(), no call stores a winner with another configuration for the
  /// question, and none removes its winners. Throws Error if there is no winner.
  void pin(const Question& question);
  /// Returns whether it was pinned.
  bool unpin(const Question& question);
  std::vector<Pin> pins() const;
  /// Returns the configuration that a question's answer is pinned to, or nothing.
  std::optional<Config> pinned(const Question& question) const;

  /// Stores the comparison of two sessions' winners. The sessions must have the same problem, and
  /// both must be cold or both warm. Replaces an earlier comparison of the same two.
  void set_comparison(const Comparison& comparison);
  /// Returns the winners of a problem on the hardware of `device`, for all APIs. They are compared
  /// in alternating turns where that was measured, otherwise by their certified intervals.
  HardwareWinners find_winners_of_hardware(const DeviceInfo& device, const std::string& problem_key,
                                           bool cold) const;
  /// Returns all winners, grouped by problem, cold/warm, and hardware.
  std::vector<HardwareWinners> winners_by_hardware() const;

  /// Stores ceilings that were measured on the card of `device`. Replaces its earlier ones.
  void set_ceilings(const DeviceInfo& device, const std::vector<Ceiling>& ceilings);
  /// Returns the latest ceiling of each kind, of all cards of the device model.
  std::vector<Ceiling> ceilings(const std::string& device_fingerprint) const;

  /// Stores the time of another library. Replaces that of the same problem, library and
  /// circumstances.
  void put_peer(const Peer& peer);
  /// Stores a health check that the card of `device` fails with its current driver. Replaces the
  /// earlier record of the same check. Other cards of the model are not affected.
  void set_unsafe(const DeviceInfo& device, const UnsafePart& part);
  /// Records that the card of `device` passes this check with its current driver.
  void clear_unsafe(const DeviceInfo& device, const std::string& check);
  /// Returns the checks that the card of `device` fails with its current driver.
  std::vector<UnsafePart> unsafe(const DeviceInfo& device) const;

  /// Returns the users' kernels that the database carries.
  std::vector<CarriedKernel> kernels() const;
  /// Returns the totals of the compiled kernels that the database carries, by target.
  std::vector<BinaryTotals> binaries() const;

  /// Returns the fastest configurations of all sessions for a device, problem and cold/warm, best
  /// first. Configurations that ran at full size come before those that only ran on a stand-in.
  /// Only times of the same problem are compared; configurations of different stand-ins are ordered
  /// by their ranks.
  std::vector<Config> fastest_configs(const std::string& device_fingerprint,
                                      const std::string& problem_key, bool cold, int most) const;

  /// Returns the content keys of a configuration's kernels at its last trial for a result's problem
  /// in its circumstances, in the form of Trial::content_keys. Returns nothing if no trial is
  /// recorded.
  std::optional<std::string> content_keys(const StoredWinner& result, const Config& config) const;
  /// Returns the recorded time of a configuration for a result's problem in its circumstances, at
  /// full size: the least median of all trials. Returns nothing if there is none.
  std::optional<double> recorded_us(const StoredWinner& result, const Config& config) const;
  /// Stores the regrets of these results, which must exist.
  void set_regrets(const std::vector<StoredWinner>& results);

  /// Returns trials of candidates of an operation that hung or crashed on a device model in these
  /// circumstances, in sessions before `session` or as lost work of it. What another party killed
  /// is not among them.
  std::vector<Trial> ended_badly(std::int64_t session) const;

  /// Returns all trials of a session, in order.
  std::vector<Trial> trials(std::int64_t session) const;

  Contents contents() const;
  /// Writes rows in one transaction. Each replaces a row with the same key, except for winners of
  /// pinned problems with other configurations. Devices that results and ceilings refer to must be
  /// among them or in the database.
  void write(const Contents& contents);
  /// Merges the other database's contents into this one in one transaction; see db/merge.hpp.
  Merge merge(const Contents& theirs);
  /// Takes over the sessions, trials and comparisons of another database that this one lacks, in
  /// one transaction, after its contents() were merged. Doing it twice changes nothing. With
  /// `rehearse`, only reports what would be taken over. See db/sqlite/history_rows.hpp.
  HistoryMerge merge_history(const TunedDb& theirs, bool rehearse = false);
  /// Writes a compact read-only database without raw samples to `file`. The file appears complete
  /// or not at all, and replaces an existing one. Throws Error.
  static void ship(const Contents& contents, const std::filesystem::path& file);

  /// Removes rows. With `rehearse`, only reports what would be removed.
  Pruned prune(const PruneRequest& request, bool rehearse);
  /// Returns the space of removed rows to the file system.
  void compact();

  std::vector<StoredSession> sessions() const;
  std::vector<StoredDevice> devices() const;

  struct Counts {
    std::int64_t devices = 0, problems = 0, sessions = 0, trials = 0, winners = 0, cards = 0;
  };
  Counts counts() const;
  /// Returns the rows that are ignored because they are damaged or refer to a damaged row.
  std::vector<DamagedRow> damaged() const;
  /// The same without trials, which are most rows of a database: what answers depend on.
  std::vector<DamagedRow> damaged_but_trials() const;
  /// Returns the damaged trials of a problem.
  std::vector<DamagedRow> damaged_trials(const std::string& problem_key) const;
  /// Returns the damaged rows that calls of this object, opened for writing, have replaced or
  /// removed.
  std::vector<DamagedRow> discarded() const;
  /// Reads the rows that this object has written from the file that now has its name, as another
  /// process would. Throws Error if a row is neither there as written nor replaced by another
  /// process: then the file was overwritten in the meantime.
  void confirm() const;

  /// Runs SQLite's integrity and foreign-key checks, and checks every row's checksum and the
  /// manifest of a shipped database. Returns one line per problem; none if the database is intact.
  std::vector<std::string> check() const;

 private:
  struct Impl;
  explicit TunedDb(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace greta::db
