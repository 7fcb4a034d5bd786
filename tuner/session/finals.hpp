#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "tuner/measure/certify.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// The last phase of a session: confirms the best candidates at full size, times them and the
/// default in interleaved rounds, certifies the winner, and verifies it again on new inputs.
class Finals {
 public:
  using RecordTrial = std::function<void(Trial)>;
  using Announce = std::function<void(const std::string&)>;

  Finals(Evaluator& evaluator, SessionResult& result, const Budget& budget,
         const SessionOptions& options, const std::atomic<bool>& stop)
      : evaluator_(evaluator),
        result_(result),
        budget_(budget),
        options_(options),
        stop_(stop),
        search_s_(budget.elapsed_s()) {}

  /// Returns the default (unless it failed) and the contenders that were not significantly slower.
  std::vector<Config> contenders() const;

  /// Sets result.winner, unless no finalist was correct or the session was stopped, and
  /// result.finalists.
  void run(const RecordTrial& record, const Announce& announce);

 private:
  /// Seconds of rounds in one call, so that a stop takes effect soon.
  static constexpr double call_s = 2;

  std::vector<Config> shortlist() const;
  void confirm(const RecordTrial& record);
  Certification certification() const { return certify(contenders_, comparisons_); }
  void time_in_rounds(const RecordTrial& record);
  void add_rounds(int count, double seconds_left, const RecordTrial& record);
  void find_culprit(const Failure& failure, const RecordTrial& record);
  void drop_hopeless();
  std::optional<std::size_t> unbeaten_earlier(const Certification& proved) const;
  void choose(const RecordTrial& record, const Announce& announce);
  bool keep_earlier(const Certification& proved, const RecordTrial& record);
  void report_unproved(const Certification& proved);
  Result<double> ratio_elsewhere(const Config& config, int process);
  bool faster_elsewhere(const Config& config, const Announce& announce);
  bool check_again(const Config& config, const RecordTrial& record, Verdict& verdict);
  Winner describe(const Certification& certification) const;
  double time_left_s() const;
  TrialLimits limits(double best_us) const;
  void drop(std::size_t contender, Departure why);

  Evaluator& evaluator_;
  SessionResult& result_;
  const Budget& budget_;
  const SessionOptions& options_;
  const std::atomic<bool>& stop_;
  const double search_s_;             // wall time before the finals
  std::vector<Finalist> contenders_;  // [0] is the default, unless it failed
  std::vector<Finalist> left_;        // those that were dropped
  std::size_t comparisons_ = 0;       // number of contenders compared with the default
  bool default_failed_ = false;
  int dropped_rounds_ = 0;
  std::uint64_t flush_bytes_ = 0;
  std::string clocks_;
  CardState card_state_;
  int unexplained_failures_ = 0;
  std::vector<double> elsewhere_;  // the default's time over the winner's, in further processes
  int tried_elsewhere_ = 0;        // number of candidates that were timed there
};

}  // namespace greta::tuner
