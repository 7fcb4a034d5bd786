#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/comparison.hpp"
#include "db/trial.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/device_info.hpp"

namespace greta {

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

/// A winner as it is stored, with its circumstances.
struct StoredWinner {
  Problem problem;
  DeviceInfo device;      ///< as last seen
  std::string device_id;  ///< "vulkan:0" at the time
  std::int64_t session = 0;
  Provenance provenance;
  Winner winner;
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

/// A SQLite database of trials and winners. Several processes may write one file at once. Every
/// call commits before it returns, so a killed process loses at most the trial in flight.
/// Errors (corrupt file, newer schema, full disk, read-only folder) throw Error with one line that
/// names the file and the cause; nothing existing is overwritten.
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

  std::int64_t begin_session(const SessionRecord& session);
  void add_trial(std::int64_t session, const Trial& trial);
  /// Marks how a session ended ("done", "interrupted", …). A session without it was killed.
  void end_session(std::int64_t session, const std::string& outcome);

  /// Stores a session's winner as the answer for its device, problem and cold/warm. Replaces an
  /// earlier one.
  void set_winner(std::int64_t session, const Winner& winner);
  std::optional<StoredWinner> find_winner(const std::string& device_fingerprint,
                                          const std::string& problem_key, bool cold) const;
  std::vector<StoredWinner> winners() const;

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

  /// The fastest configurations of all sessions for a device, problem and cold/warm, best first;
  /// what ran on a stand-in counts only where nothing ran at full size.
  std::vector<Config> fastest_configs(const std::string& device_fingerprint,
                                      const std::string& problem_key, bool cold, int most) const;

  /// All trials of a session, in order.
  std::vector<Trial> trials(std::int64_t session) const;

  struct Counts {
    std::int64_t devices = 0, problems = 0, sessions = 0, trials = 0, winners = 0;
  };
  Counts counts() const;
  /// SQLite's own integrity and foreign-key checks; empty when sound, else one line per problem.
  std::vector<std::string> check() const;

 private:
  struct Impl;
  explicit TunedDb(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace greta
