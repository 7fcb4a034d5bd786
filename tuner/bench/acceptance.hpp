#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/bench/compare.hpp"

namespace greta::tuner {

/// A slowdown that is known and accepted until a date.
struct Acceptance {
  std::string benchmark{};   ///< pattern of benchmark_name(), in which * stands for any text
  std::string device = "*";  ///< pattern of the device's name
  double most = 0;           ///< largest accepted slowdown, as a share: 0.12
  std::string reason{};      ///< on one line
  std::string until{};       ///< last day, UTC: "2026-12-31"
};

/// Reads a file of accepted slowdowns (docs/benchmarks.md). A failure is one line with the file and
/// the place in it.
Result<std::vector<Acceptance>> read_acceptances(const std::filesystem::path& file);

/// What became of an acceptance in a comparison.
struct AcceptanceUse {
  enum class State {
    used,      ///< it accepts a row
    exceeded,  ///< a row is slower than it accepts
    unused,    ///< it matches no row that is slower
    expired    ///< its last day is over, so that it accepts nothing
  };

  Acceptance acceptance;
  State state = State::unused;
  std::size_t rows = 0;     ///< number of rows that it accepts
  std::size_t matches = 0;  ///< number of rows of which it is
};
std::string_view to_string(AcceptanceUse::State state);

/// Accepts the slower rows of a comparison that an acceptance matches, unless its last day is
/// before `today` ("2026-12-31"), or the whole interval of the change exceeds what it accepts. Rows
/// that fail are never accepted. Rows that are accepted come after those that are not.
std::vector<AcceptanceUse> accept(BaselineComparison& comparison,
                                  const std::vector<Acceptance>& acceptances,
                                  const std::string& today);

/// Returns a line for readers on an acceptance that is not in use, or does not suffice; empty for
/// others.
std::string acceptance_text(const AcceptanceUse& use);

}  // namespace greta::tuner
