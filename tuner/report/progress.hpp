#pragma once

#include <cstdio>
#include <string>

#include "tuner/session/session.hpp"

namespace greta::tuner {

/// Shows a session's progress on a stream: on a terminal as one updated line, otherwise as lines
/// for phases, improvements and every tenth of the budget.
class Progress : public SessionObserver {
 public:
  Progress(std::FILE* stream, bool live) : stream_(stream), live_(live) {}
  ~Progress() override { clear_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void on_phase(const std::string& what) override;
  void on_trial(const SessionResult& result, const Budget& budget) override;

 private:
  void show_line(const std::string& line);
  void clear_line();

  std::FILE* stream_;
  bool live_;
  bool line_open_ = false;
  double best_us_ = 0;
  std::string best_key_;
  int tenth_ = 0;
};

}  // namespace greta::tuner
