#include "tuner/diagnose/where.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace greta::tuner {
namespace {

std::string few(const std::vector<std::int64_t>& sorted) {
  constexpr std::size_t most = 6;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(most, sorted.size()));
  std::string text = fmt::format("{}", fmt::join(sorted.begin(), end, ", "));
  if (sorted.size() > most) text += fmt::format(" and {} more", sorted.size() - most);
  return text;
}

/// Returns the residues of all indices by a modulus.
std::set<std::int64_t> residues(const std::vector<std::int64_t>& indices, std::int64_t modulus) {
  std::set<std::int64_t> found;
  for (const std::int64_t index : indices) found.insert(index % modulus);
  return found;
}

/// Returns words for indices that repeat with a period; empty if they don't.
std::string periodic(const std::vector<std::int64_t>& sorted, std::int64_t extent) {
  for (std::int64_t period = 2; period <= 256 && 2 * period < extent; ++period) {
    const auto found = residues(sorted, period);
    std::int64_t there = 0;
    for (const std::int64_t one : found) there += (extent - one + period - 1) / period;
    if (2 * static_cast<std::int64_t>(found.size()) > period ||
        there != static_cast<std::int64_t>(sorted.size()))
      continue;
    return fmt::format("{} modulo {}", few({found.begin(), found.end()}), period);
  }
  return {};
}

}  // namespace

std::string words_of_indices(const std::vector<std::int64_t>& sorted, std::int64_t extent,
                             std::int64_t part) {
  if (sorted.empty()) return "none";
  const auto count = static_cast<std::int64_t>(sorted.size());
  const std::int64_t first = sorted.front(), last = sorted.back();
  if (count == extent) return "all";
  if (last - first + 1 == count) {
    std::string text = count == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
    if (part <= 1 || part >= extent) return text;
    const std::int64_t edge = extent / part * part;
    if (last + 1 == extent && first == edge)
      return text + fmt::format(" (the incomplete last part of {})", part);
    if (first % part == 0 && (last + 1) % part == 0 && count == part)
      return text + fmt::format(" (part {} of {})", first / part, part);
    if (last < part && first == 0) return text + fmt::format(" (in the first part of {})", part);
    return text;
  }
  const std::string repeats = periodic(sorted, extent);
  if (!repeats.empty()) return repeats;
  if (part > 1 && part < extent) {
    const auto within = residues(sorted, part);
    if (2 * static_cast<std::int64_t>(within.size()) <= part)
      return fmt::format("{} ({} within parts of {})", few(sorted),
                         few({within.begin(), within.end()}), part);
  }
  return few(sorted);
}

Place place_of(const ExaminedOutput& output, const std::vector<char>& marked) {
  std::set<std::int64_t> rows, cols;
  Place place;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] == 0) continue;
    ++place.count;
    const auto at = static_cast<std::int64_t>(i);
    rows.insert(at / output.spec.cols);
    cols.insert(at % output.spec.cols);
  }
  place.rows.assign(rows.begin(), rows.end());
  place.cols.assign(cols.begin(), cols.end());
  return place;
}

std::int64_t part_of(const FailedCase& failed, std::int64_t extent) {
  for (const Division& one : failed.divisions) {
    if (one.extent == extent && one.part > 1) return one.part;
  }
  return 0;
}

std::string words_of_place(const Evidence& evidence, const ExaminedOutput& output,
                           const std::vector<char>& marked) {
  const Place place = place_of(output, marked);
  const TensorSpec& spec = output.spec;
  std::string text = fmt::format("{}: {} of {} elements", spec.name, place.count, spec.elements());
  if (place.count == 0) return text;
  const auto words = [&](const std::vector<std::int64_t>& indices, std::int64_t extent,
                         const char* one, const char* many) {
    const std::string said = words_of_indices(indices, extent, part_of(evidence.failed(), extent));
    if (said == "all") return fmt::format("all {}", many);
    return fmt::format("{} {}", indices.size() == 1 ? one : many, said);
  };
  if (spec.rows > 1) text += ", in " + words(place.rows, spec.rows, "row", "rows");
  if (spec.cols > 1) {
    text += spec.rows > 1 ? ", " : ", in ";
    text += words(place.cols, spec.cols, "column", "columns");
  }
  return text;
}

std::vector<std::string> places(const Evidence& evidence) {
  std::vector<std::string> lines;
  for (const ExaminedOutput& output : evidence.outputs()) {
    if (output.count(output.wrong) == 0) continue;
    lines.push_back(words_of_place(evidence, output, output.wrong));
    const auto threads = static_cast<std::int64_t>(evidence.failed().workgroup);
    std::vector<std::int64_t> flat;
    for (std::size_t i = 0; i < output.wrong.size(); ++i) {
      if (output.wrong[i] != 0) flat.push_back(static_cast<std::int64_t>(i));
    }
    for (const std::int64_t lanes : {threads, std::int64_t{64}, std::int64_t{32}}) {
      const auto elements = static_cast<std::int64_t>(output.wrong.size());
      if (lanes < 2 || elements < 3 * lanes || flat.size() < 4) continue;
      const auto found = residues(flat, lanes);
      if (4 * static_cast<std::int64_t>(found.size()) > lanes) continue;
      lines.push_back(
          fmt::format("if consecutive threads write consecutive elements: threads {} of {}",
                      words_of_indices({found.begin(), found.end()}, lanes, 0), lanes));
      break;
    }
  }
  return lines;
}

}  // namespace greta::tuner
