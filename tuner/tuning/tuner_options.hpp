#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "db/lookup/lookup_files.hpp"
#include "kernels/catalog.hpp"
#include "tuner/session/contest.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// Options of a tuner. With the defaults it tunes on the best device for a minute, in this process.
/// `database` and `cache_directory` must be set.
struct TunerOptions {
  Catalog catalog = Catalog::built_in();
  /// Names of select_devices(). Problems are spread over the cards of one model; if there are fewer
  /// problems than cards, cards that measure alike share the candidates of a problem. Different
  /// models, and different APIs of one card, each tune every problem, and are compared.
  std::vector<std::string> devices{"auto"};
  std::filesystem::path database;  ///< trials and winners; created if missing
  /// Read-only databases whose winners are tried early: an application's, and a folder of those
  /// that GRETA ships (see LookupFiles).
  std::vector<std::filesystem::path> application;
  std::filesystem::path shipped = shipped_folder();
  std::filesystem::path cache_directory;  ///< compiled kernels and locks
  /// Command that starts this program as a worker, in which kernels run, e.g. {"/proc/self/exe",
  /// "worker"}. It must call serve_as_worker(). If empty, kernels run in this process, and a crash
  /// or hang of a driver ends it.
  std::vector<std::string> worker;
  /// The folder where candidates that fail verification are kept as cases; empty: nowhere.
  std::filesystem::path keep_failed;
  std::string name = "greta::tuner";    ///< program name, shown to processes that wait for the card
  Budget budget = Budget::seconds(60);  ///< per problem
  std::string strategy = "auto";        ///< for parse_strategy()
  std::optional<std::uint64_t> seed;    ///< seed of inputs and search; empty: random
  std::uint64_t flush_bytes = 0;        ///< size of the cache flush; 0: from the last-level cache
  bool cold = true;                     ///< flush the caches before each sample
  int rounds = 60;                      ///< most that certify a winner (SessionOptions::rounds)
  bool compare_naive = false;           ///< also time a kernel with one thread per output
  bool reject_spills = false;           ///< candidates that spill registers fail before they run
  bool resume = true;                   ///< go on with an unfinished run of the same request
  bool retry_failed = false;            ///< also try candidates that hung or crashed before
  bool for_energy = false;              ///< also find the configurations of the least energy
  /// Store a vendor's configuration that is faster than the winner (SessionOptions::allow_vendor).
  bool allow_vendor = false;
  bool provisional = false;  ///< the caller times winners again (SessionOptions::provisional)
  /// When the tasks of a time budget have to be done. Tasks that have not begun then are left out,
  /// and each gets its share of the time that is left, less what the earlier ones took beyond their
  /// budgets. Empty: each task has its share of the budget.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  bool pin = false;           ///< pin the answers (TunedDb::pin())
  bool lock = true;           ///< wait for other processes that measure on the card
  bool allow_unsafe = false;  ///< also use what failed its health check
};

/// A problem and the configurations to try first.
struct TuningTask {
  Problem problem;
  std::vector<Config> try_first{};
  SearchLimits limits{};
  std::string where{};  ///< where it is listed, for messages: "smoke.json: problems[1]"
  double share = 1;     ///< fraction of the budget, 0…1
  /// Other forms of the problem, as with another packing of its weights: each is tuned with its
  /// share of the task's budget, and the winners of all are compared.
  std::vector<Problem> beside{};

  /// Returns the problem and those beside it.
  std::vector<Problem> forms() const;
};

/// The result of a task.
struct TaskResult {
  /// One per device model and form of the problem, in the order of the options and of the task.
  std::vector<SessionResult> sessions;
  std::optional<ContestResult> contest;  ///< between entrants(), if there are several
  /// Why the task was given up after the cards that tried it had failed; empty if it was not.
  std::string given_up{};

  /// Returns whether every device has a winner.
  bool won() const;
  /// Returns the sessions that have a winner.
  std::vector<const SessionResult*> entrants() const;
  /// Returns why the database lacks part of this; empty if it is complete.
  std::string not_stored() const;
};

}  // namespace greta::tuner
