#include "db/determinism.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace greta::db {
namespace {

constexpr std::string_view equal_bits = "equal bits in ";
constexpr std::string_view other_bits = "other bits of ";
constexpr std::string_view declared = ", as sums have no fixed order, in ";
constexpr std::string_view of_runs = " runs, ";

std::string elements(std::size_t count) {
  return fmt::format("{} element{}", count, count == 1 ? "" : "s");
}

/// Reads the number after a text, and drops both. Returns 0 if the text is not there.
std::size_t number_after(std::string_view& text, std::string_view what) {
  const auto at = text.find(what);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + what.size());
  const std::string digits(text.substr(0, text.find_first_not_of("0123456789")));
  return std::strtoull(digits.c_str(), nullptr, 10);
}

}  // namespace

std::string to_text(const Determinism& determinism) {
  const std::string how =
      determinism.differing == 0
          ? std::string(equal_bits)
          : fmt::format("{}{}{}", other_bits, elements(determinism.differing), declared);
  const std::string ended = determinism.planned > determinism.runs
                                ? fmt::format(" ({} would take too long)", determinism.planned)
                                : "";
  return fmt::format("{}{}{}{} of them on a busy device{}", how, determinism.runs, of_runs,
                     determinism.busy, ended);
}

std::optional<Determinism> determinism_of(const Verdict& verdict) {
  std::string_view text = verdict.method;
  Determinism found;
  if (text.find(equal_bits) != std::string_view::npos) {
    found.runs = static_cast<int>(number_after(text, equal_bits));
  } else {
    found.differing = number_after(text, other_bits);
    found.runs = static_cast<int>(number_after(text, declared));
  }
  if (found.runs == 0) return std::nullopt;
  found.busy = static_cast<int>(number_after(text, of_runs));
  found.planned = static_cast<int>(number_after(text, "("));
  if (found.planned == 0) found.planned = found.runs;
  return found;
}

std::string short_text(const std::optional<Determinism>& determinism) {
  if (!determinism) return {};
  return fmt::format("{}, {} run{}",
                     determinism->differing == 0
                         ? "equal bits"
                         : fmt::format("{} differ{}", elements(determinism->differing),
                                       determinism->differing == 1 ? "s" : ""),
                     determinism->runs, determinism->runs == 1 ? "" : "s");
}

}  // namespace greta::db
