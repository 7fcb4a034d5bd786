#include "tuner/search/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace greta::tuner {
namespace {

struct Unit {
  std::string_view suffix;
  Budget::Kind kind;
  double scale;
  double most;  ///< largest allowed number before the suffix
};

constexpr Unit units[] = {
    {"s", Budget::Kind::seconds, 1, 1e9},    {"m", Budget::Kind::seconds, 60, 1e7},
    {"h", Budget::Kind::seconds, 3600, 1e5}, {"%", Budget::Kind::percent, 1, 100},
    {"", Budget::Kind::trials, 1, 1e15},
};

std::optional<double> positive_number(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || stop != end || !std::isfinite(number) || number <= 0) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

Result<Budget> Budget::parse(std::string_view text) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.suffix)) continue;
    const auto number = positive_number(text.substr(0, text.size() - unit.suffix.size()));
    if (!number || *number > unit.most) break;
    if (unit.kind == Kind::trials && *number != std::floor(*number)) break;
    Budget budget;
    budget.kind_ = unit.kind;
    budget.amount_ = *number * unit.scale;
    budget.text_ = text;
    return budget;
  }
  return bad_field("budget", text.empty() ? "\"\"" : std::string(text),
                   "must be a time like 60s, 10m or 1h, a number of trials like 500, or a share of "
                   "the space like 5%; more than 0, at most 100%");
}

Budget Budget::seconds(double seconds) {
  return parse(fmt::format("{}s", seconds)).value();
}

Budget Budget::trials_of(std::uint64_t trials) {
  return parse(fmt::format("{}", trials)).value();
}

Budget Budget::part(double share) const {
  Budget smaller = *this;
  if (kind_ == Kind::seconds) {
    smaller.amount_ = amount_ * share;
    smaller.text_ = fmt::format("{:g}s", smaller.amount_);
  } else if (kind_ == Kind::trials) {
    smaller.amount_ = std::max(1.0, std::floor(amount_ * share));
    smaller.text_ = fmt::format("{:.0f}", smaller.amount_);
  }
  return smaller;
}

void Budget::start(std::uint64_t space_count, Clock::time_point now) {
  start_ = now;
  trials_ = 0;
  const double limit =
      kind_ == Kind::percent ? amount_ / 100 * static_cast<double>(space_count) : amount_;
  if (kind_ != Kind::seconds)
    trial_limit_ = static_cast<std::uint64_t>(std::max(1.0, std::ceil(limit)));
}

void Budget::add_spent(double seconds) {
  start_ -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

bool Budget::spent(Clock::time_point now) const {
  return kind_ == Kind::seconds ? elapsed_s(now) >= amount_ : trials_ >= trial_limit_;
}

double Budget::used(Clock::time_point now) const {
  const double share = kind_ == Kind::seconds
                           ? elapsed_s(now) / amount_
                           : static_cast<double>(trials_) / static_cast<double>(trial_limit_);
  return std::clamp(share, 0.0, 1.0);
}

double Budget::elapsed_s(Clock::time_point now) const {
  return std::chrono::duration<double>(now - start_).count();
}

double Budget::remaining_s(Clock::time_point now) const {
  if (kind_ != Kind::seconds) return std::numeric_limits<double>::infinity();
  return std::max(0.0, amount_ - elapsed_s(now));
}

std::uint64_t Budget::remaining_trials() const {
  if (kind_ == Kind::seconds) return std::numeric_limits<std::uint64_t>::max();
  return trial_limit_ > trials_ ? trial_limit_ - trials_ : 0;
}

}  // namespace greta::tuner
