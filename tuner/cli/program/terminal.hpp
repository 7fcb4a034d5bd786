#pragma once

#include <optional>

#include "tuner/cli/program/tool.hpp"
#include "tuner/report/card_progress.hpp"
#include "tuner/report/progress.hpp"
#include "tuner/tuning/observer.hpp"

namespace greta::tuner::cli {

/// Prints the events of a tuner to standard error.
class Terminal final : public TunerObserver {
 public:
  explicit Terminal(Verbosity verbosity = Verbosity::normal);

  void on_wait(const std::string& holder, const std::string& card) override;
  void on_unsafe(const DeviceInfo& device, const UnsafePart& part,
                 const DeviceInfo* instead) override;
  void on_damage(const TunedDb& db, const std::vector<DamagedRow>& rows) override;
  void on_unreadable(const std::string& line) override;
  void on_resume(const UnfinishedRun& run) override;
  void on_run(const RunStart& run) override;
  void on_session(const SessionStart& session) override;
  void on_phase(const DeviceInfo& device, const std::string& what) override;
  void on_trial(const SessionResult& result, const Budget& budget) override;
  void on_session_end(const SessionResult& result) override;
  void on_card_lost(const std::string& why) override;
  void on_not_stored(const std::string& why) override;

 private:
  Verbosity verbosity_;
  bool live_;
  bool several_problems_ = false;
  std::optional<Progress> progress_;   // of one session at a time
  std::optional<CardProgress> cards_;  // of several cards
};

/// Returns the error that ends a command after a library's failure: one line, in which fields are
/// options, and the exit code.
CommandError command_error(const Failure& failure);

/// Returns the value, or throws CommandError.
template <typename T>
T value_of(Result<T> result) {
  if (!result) throw command_error(result.failure());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace greta::tuner::cli
