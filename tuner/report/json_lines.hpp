#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tuner/report/print.hpp"
#include "tuner/tuning/observer.hpp"

namespace greta::tuner {

/// Writes the events of a run as one JSON object per line (docs/json.md). If nobody reads them any
/// more, the rest is dropped, and the run goes on.
class JsonLines final : public TunerObserver {
 public:
  /// Writes to a duplicate of `stream`, whose own state a closed pipe does not change.
  explicit JsonLines(std::FILE* stream);
  /// Passes each object to a function as text.
  explicit JsonLines(std::function<void(const std::string&)> receive);

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
  /// A message for the user that no event contains.
  void warn(const std::string& text);
  /// The run has ended. `error`: why it could not go on; empty if it could.
  void end(bool all_won, bool interrupted, const std::string& error);
  /// Returns whether an event could not be written, as to a full disk.
  bool failed() const { return stream_ && stream_->failed(); }

 private:
  void write(nlohmann::ordered_json event);

  std::optional<LineStream> stream_;
  std::function<void(const std::string&)> receive_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace greta::tuner
