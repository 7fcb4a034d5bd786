#pragma once

#include <cstdio>
#include <string>

#include "tuner/report/live_view.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// How much of a session's progress is shown.
enum class Verbosity {
  quiet,   ///< nothing
  normal,  ///< a live display on a terminal; otherwise phases, improvements and tenths of the
           ///< budget
  verbose  ///< a line for each phase and each trial
};

/// Shows a session's progress on a stream. A terminal that is too small for the display gets lines.
class Progress : public SessionObserver {
 public:
  /// `live`: the stream, if it is a terminal, can move its cursor.
  Progress(std::FILE* stream, Verbosity verbosity, bool live = true);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// A session begins. Lines name the device only if there are several.
  void on_session(const Problem& problem, const DeviceInfo& device, std::size_t devices);
  void on_phase(const std::string& what) override;
  void on_trial(const SessionResult& result, const Budget& budget) override;

 private:
  bool show_live() const;
  void show_improvement(const SessionResult& result, const Budget& budget);
  void show_line(const std::string& line) const;

  std::FILE* stream_;
  Verbosity verbosity_;
  bool live_;
  LiveView view_;
  double best_us_ = 0;
  std::string best_key_;
  int tenth_ = 0;
};

}  // namespace greta::tuner
