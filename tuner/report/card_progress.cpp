#include "tuner/report/card_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/terminal_size.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t narrowest_for_cards = 40;

std::string outcome_text(const SessionResult& result) {
  if (!result.winner) return "no winner";
  return fmt::format("{}, {}", format_time(result.winner->measurement),
                     result.winner->config.shown());
}

}  // namespace

CardProgress::CardProgress(std::FILE* stream, Verbosity verbosity, bool live, const RunStart& run)
    : stream_(stream), verbosity_(verbosity), live_(live && isatty(fileno(stream)) != 0) {
  view_.begin(run);
}

CardProgress::~CardProgress() {
  show_below(stream_, {});
}

// Write errors are ignored: a closed or full stream must not end the run.
void CardProgress::show_line(const std::string& line) const {
  if (line.empty()) return;
  print_text(stream_, one_line(line) + "\n");
  static_cast<void>(std::fflush(stream_));
}

void CardProgress::show(const std::string& line) const {
  if (verbosity_ == Verbosity::quiet) return;
  const TerminalSize size = live_ ? terminal_size(stream_) : TerminalSize{};
  const bool fits = size.columns >= narrowest_for_cards && view_.rows().size() + 3 < size.rows;
  if (verbosity_ == Verbosity::verbose || !fits) return show_line(line);
  show_below(stream_, view_.lines(size.columns - 1));
}

void CardProgress::on_session(const SessionStart& session) {
  view_.begin(session);
  std::string cards;
  for (const DeviceInfo& card : session.cards) cards += (cards.empty() ? "" : ", ") + card.id();
  show(fmt::format("{}: {}", cards, session.problem.key()));
}

void CardProgress::on_phase(const DeviceInfo& device, const std::string& what) {
  view_.set_phase(device, what);
  show(verbosity_ == Verbosity::verbose ? device.id() + ": " + what : "");
}

void CardProgress::on_trial(const SessionResult& result, const Budget& budget) {
  view_.add_trial(result, budget);
  const Trial& trial = result.trials.back();
  show(verbosity_ != Verbosity::verbose
           ? ""
           : fmt::format("{}: trial {}, {}: {}", result.device.id(), result.trials.size(),
                         trial.config.shown(),
                         trial.ok()
                             ? format_time(trial.measurement)
                             : fmt::format("{}: {}", to_string(*trial.failure), trial.message)));
}

void CardProgress::on_session_end(const SessionResult& result) {
  view_.end(result);
  show(fmt::format("{}: {}: {}, {}", result.device.id(), result.problem.key(),
                   format_count(static_cast<std::int64_t>(result.trials.size()), "trial"),
                   outcome_text(result)));
}

void CardProgress::on_card_lost(const std::string& why) {
  view_.lose(why);
}

}  // namespace greta::tuner
