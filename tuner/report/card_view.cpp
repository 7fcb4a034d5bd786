#include "tuner/report/card_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tuner/measure/ceilings.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

double seconds_between(CardView::Clock::time_point from, CardView::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// Returns "45 s", "12 min" or "3.5 h".
std::string duration_text(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", std::max(0.0, seconds));
  if (seconds < 6000) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string left_text(const Budget& budget) {
  if (budget.kind() == Budget::Kind::seconds) return duration_text(budget.remaining_s());
  if (budget.trials() == 0) return "";
  const double each_s = budget.elapsed_s() / static_cast<double>(budget.trials());
  return duration_text(each_s * static_cast<double>(budget.remaining_trials()));
}

/// Returns at most `columns` characters of a text; the last one is "…" if any is missing.
std::string cut(std::string text, std::size_t columns) {
  if (text_columns(text) <= columns) return text;
  while (!text.empty() && text_columns(text) + 1 > columns) {
    do {
      text.pop_back();
    } while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80);
    if (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0xC0) text.pop_back();
  }
  return text + "…";
}

std::string padded(const std::string& text, std::size_t columns, bool right) {
  const std::size_t width = text_columns(text);
  const std::string space(width < columns ? columns - width : 0, ' ');
  return right ? space + text : text + space;
}

/// The cells of a card's line before the problem.
using Cells = std::array<std::string, 6>;
const Cells titles{"card", "trials", "a second", "best", "of roofline", "left"};

Cells cells_of(const CardView::Row& row) {
  if (row.lost) return {row.card, "lost", "", "", "", ""};
  const double rate = row.seconds > 0 ? static_cast<double>(row.trials) / row.seconds : 0;
  return {row.card,
          fmt::format("{}", row.trials),
          rate > 0 ? fmt::format("{:.1f}", rate) : "",
          row.best.empty() ? "none yet" : row.best,
          row.share,
          row.left};
}

}  // namespace

void CardView::begin(const RunStart& run, Clock::time_point now) {
  rows_.clear();
  for (const DeviceInfo& card : run.cards) {
    rows_.push_back({.card = card.id(), .uuid = card.card.uuid});
  }
  problems_ = run.problems;
  ended_ = trials_ = 0;
  since_ = now;
}

CardView::Row* CardView::row_of(const std::string& id) {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.card == id; });
  return found == rows_.end() ? nullptr : &*found;
}

void CardView::begin(const SessionStart& session, Clock::time_point now) {
  Row* const first = row_of(session.cards.front().id());
  if (first == nullptr) return;
  for (const DeviceInfo& card : session.cards) {
    Row* const row = row_of(card.id());
    if (row == nullptr) continue;
    *row = {.card = row->card, .uuid = row->uuid};
    row->problem = session.problem.key();
    row->session = static_cast<std::size_t>(first - rows_.data());
    row->since = now;
  }
}

void CardView::set_phase(const DeviceInfo& device, const std::string& what) {
  if (Row* const row = row_of(device.id())) row->phase = what;
}

void CardView::add_trial(const SessionResult& result, const Budget& budget, Clock::time_point now) {
  Row* const first = row_of(result.device.id());
  if (first == nullptr) return;
  ++trials_;
  const auto session = static_cast<std::size_t>(first - rows_.data());
  const Trial& trial = result.trials.back();
  const auto own = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) {
    return row.session == session && row.problem == first->problem && !trial.card.empty() &&
           row.uuid == trial.card;
  });
  Row& row = own == rows_.end() ? *first : *own;
  ++row.trials;
  row.seconds = seconds_between(row.since, now);
  const Trial* const best = best_trial(result.trials, trial.problem_key);
  const bool smaller = result.stand_in && trial.problem_key == result.stand_in->problem.key();
  const Work& work = smaller ? result.stand_in->work : result.work;
  const double roof_us = roofline_us(result.problem.dtype, work, result.ceilings);
  for (Row& other : rows_) {
    if (other.session != session || other.problem != first->problem) continue;
    other.left = left_text(budget);
    if (best == nullptr) continue;
    other.best = format_time(best->measurement.median_us);
    if (roof_us > 0) other.share = format_share(roof_us / best->measurement.median_us);
  }
}

void CardView::end(const SessionResult& result) {
  ++ended_;
  if (Row* const row = row_of(result.device.id())) row->left = "done";
}

void CardView::lose(const std::string& why) {
  for (Row& row : rows_) {
    if (why.starts_with(row.card + ": ")) row.lost = true;
  }
}

std::string CardView::run_line(Clock::time_point now) const {
  const double seconds = seconds_between(since_, now);
  std::string text =
      fmt::format("{} of {} done, {} trials", ended_,
                  format_count(static_cast<std::int64_t>(problems_), "problem"), trials_);
  if (seconds > 0) text += fmt::format(", {:.1f} a second", static_cast<double>(trials_) / seconds);
  if (ended_ > 0 && ended_ < problems_) {
    text += ", about " +
            duration_text(seconds / static_cast<double>(ended_) *
                          static_cast<double>(problems_ - ended_)) +
            " left";
  }
  return text;
}

std::vector<std::string> CardView::lines(std::size_t columns, Clock::time_point now) const {
  std::vector<Cells> table{titles};
  for (const Row& row : rows_) table.push_back(cells_of(row));
  std::vector<std::string> lines{cut(run_line(now), columns)};
  for (std::size_t i = 0; i < table.size(); ++i) {
    std::string line;
    for (std::size_t column = 0; column < titles.size(); ++column) {
      std::size_t width = 0;
      for (const Cells& cells : table) width = std::max(width, text_columns(cells[column]));
      line += padded(table[i][column], width, column > 0) + "  ";
    }
    if (i == 0) line += "problem";
    if (i > 0) {
      const Row& row = rows_[i - 1];
      line += row.best.empty() && !row.phase.empty() ? row.problem + " (" + row.phase + ")"
                                                     : row.problem;
    }
    lines.push_back(cut(line, columns));
  }
  return lines;
}

}  // namespace greta::tuner
