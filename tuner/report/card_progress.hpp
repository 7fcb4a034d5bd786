#pragma once

#include <cstdio>

#include "tuner/report/card_view.hpp"
#include "tuner/report/progress.hpp"

namespace greta::tuner {

/// Shows the progress of a run on several cards on a stream: on a terminal one display with a line
/// for each card, elsewhere a line for each session that begins or ends, or each trial.
class CardProgress {
 public:
  /// `live`: the stream, if it is a terminal, can move its cursor.
  CardProgress(std::FILE* stream, Verbosity verbosity, bool live, const RunStart& run);
  ~CardProgress();
  CardProgress(const CardProgress&) = delete;
  CardProgress& operator=(const CardProgress&) = delete;

  void on_session(const SessionStart& session);
  void on_phase(const DeviceInfo& device, const std::string& what);
  void on_trial(const SessionResult& result, const Budget& budget);
  void on_session_end(const SessionResult& result);
  void on_card_lost(const std::string& why);

 private:
  /// Shows the display, or the line where there is none.
  void show(const std::string& line) const;
  void show_line(const std::string& line) const;

  std::FILE* stream_;
  Verbosity verbosity_;
  bool live_;
  CardView view_;
};

}  // namespace greta::tuner
