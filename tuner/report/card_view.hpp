#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tuner/tuning/observer.hpp"

namespace greta::tuner {

/// What a live display shows of a run on several cards: a line for each.
class CardView {
 public:
  using Clock = std::chrono::steady_clock;

  /// One card.
  struct Row {
    std::string card;  ///< "hip:0"
    std::string problem{};
    std::string phase{};     ///< where no trial has passed yet
    std::size_t trials = 0;  ///< of this card in the session
    double seconds = 0;      ///< of the session until the last trial
    std::string best{};      ///< time of the session's best candidate
    std::string share{};     ///< its share of the roofline
    std::string left{};      ///< time or trials that the session's budget leaves
    bool lost = false;
    std::string uuid{};
    std::size_t session = 0;  ///< index of the row of the session's first card
    Clock::time_point since{};
  };

  void begin(const RunStart& run, Clock::time_point now = Clock::now());
  void begin(const SessionStart& session, Clock::time_point now = Clock::now());
  void set_phase(const DeviceInfo& device, const std::string& what);
  void add_trial(const SessionResult& result, const Budget& budget,
                 Clock::time_point now = Clock::now());
  void end(const SessionResult& result);
  void lose(const std::string& why);

  /// Returns a line about the run, one with titles, and one for each card, of at most `columns`
  /// characters. Longer problems are cut off at the end.
  std::vector<std::string> lines(std::size_t columns, Clock::time_point now = Clock::now()) const;
  const std::vector<Row>& rows() const { return rows_; }

 private:
  Row* row_of(const std::string& id);
  std::string run_line(Clock::time_point now) const;

  std::vector<Row> rows_;
  std::size_t problems_ = 0, ended_ = 0, trials_ = 0;
  Clock::time_point since_{};
};

}  // namespace greta::tuner
