#include "tuner/cli/program/terminal.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {

namespace {

bool cursor_moves() {
  const char* const terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

}  // namespace

Terminal::Terminal(Verbosity verbosity) : verbosity_(verbosity), live_(cursor_moves()) {
  progress_.emplace(stderr, verbosity_, live_);
}

void Terminal::on_wait(const std::string& holder, const std::string& card) {
  print(stderr, "waiting for {}, which measures on the same card ({}); --no-lock does not wait\n",
        holder.empty() ? "another process" : holder, card);
}

void Terminal::on_unsafe(const DeviceInfo& device, const UnsafePart& part,
                         const DeviceInfo* instead) {
  const std::string why = unsafe_text(device, part);
  tell(instead != nullptr ? fmt::format("{}; {} is used instead", why, instead->id())
                          : why + ", so that it is not used; --allow-unsafe does");
}

void Terminal::on_damage(const TunedDb& db, const std::vector<DamagedRow>& rows) {
  tell_damage(db, rows);
}

void Terminal::on_unreadable(const std::string& line) {
  tell(line);
}

void Terminal::on_resume(const UnfinishedRun& run) {
  if (verbosity_ == Verbosity::quiet) return;
  print(stderr, "going on with the unfinished run of {} (seed {}); --no-resume starts afresh\n",
        run.started_utc, run.seed);
}

void Terminal::on_run(const RunStart& run) {
  several_problems_ = run.problems > 1;
  if (run.cards.size() > run.models) cards_.emplace(stderr, verbosity_, live_, run);
}

void Terminal::on_session(const SessionStart& session) {
  if (cards_) return cards_->on_session(session);
  if (several_problems_) print(stderr, "\n{}\n", session.problem.key());
  progress_.emplace(stderr, verbosity_, live_);
  progress_->on_session(session.problem, session.cards.front(), session.models);
}

void Terminal::on_phase(const DeviceInfo& device, const std::string& what) {
  cards_ ? cards_->on_phase(device, what) : progress_->on_phase(what);
}

void Terminal::on_trial(const SessionResult& result, const Budget& budget) {
  cards_ ? cards_->on_trial(result, budget) : progress_->on_trial(result, budget);
}

void Terminal::on_session_end(const SessionResult& result) {
  if (cards_) cards_->on_session_end(result);
}

void Terminal::on_card_lost(const std::string& why) {
  if (cards_) cards_->on_card_lost(why);
  tell(why + "; the other cards go on without it");
}

void Terminal::on_not_stored(const std::string& why) {
  tell(why);
}

CommandError command_error(const Failure& failure) {
  if (failure.field && failure.field->field == "allow_unsafe") {
    return {exit_no_device,
            failure.field->reason + "; --allow-unsafe uses the device all the same"};
  }
  if (failure.field) return bad_option(failure);
  switch (failure.status) {
    case Status::invalid_argument:
    case Status::constraints:
      return {exit_usage, failure.message};
    case Status::unavailable:
      return {exit_no_device, failure.message};
    default:
      return {exit_failed, failure.message};
  }
}

}  // namespace greta::tuner::cli
