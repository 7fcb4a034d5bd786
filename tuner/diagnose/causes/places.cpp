#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

/// The expected elements of an output by value, to find where a value belongs.
class ByValue {
 public:
  explicit ByValue(const ExaminedOutput& output) {
    for (std::size_t i = 0; i < output.want.size(); ++i) {
      const Expected& want = output.want[i];
      if (std::isfinite(want.value)) sorted_.push_back({want.value, want.bound, i});
    }
    std::sort(sorted_.begin(), sorted_.end(),
              [](const Entry& a, const Entry& b) { return a.value < b.value; });
  }

  /// Returns up to `most` elements whose expected value agrees with this one.
  std::vector<std::size_t> find(double value, double within, std::size_t most) const {
    std::vector<std::size_t> found;
    auto at = std::lower_bound(sorted_.begin(), sorted_.end(), value - within,
                               [](const Entry& entry, double v) { return entry.value < v; });
    for (; at != sorted_.end() && at->value <= value + within && found.size() < most; ++at)
      found.push_back(at->index);
    return found;
  }

 private:
  struct Entry {
    double value, bound;
    std::size_t index;
  };
  std::vector<Entry> sorted_;
};

using Offset = std::pair<std::int64_t, std::int64_t>;  // rows, columns

/// Returns the distances from wrong elements to those whose values they have, the most frequent
/// first.
std::vector<Offset> frequent_offsets(const ExaminedOutput& output) {
  constexpr std::size_t most_samples = 4000, most_matches = 8, most_offsets = 6;
  const ByValue by_value(output);
  std::map<Offset, std::size_t> counts;
  std::size_t sampled = 0;
  const std::size_t step = std::max<std::size_t>(1, output.count(output.wrong) / most_samples);
  for (std::size_t i = 0, seen = 0; i < output.got.size(); ++i) {
    if (output.wrong[i] == 0 || !std::isfinite(output.got[i]) || output.got[i] == 0) continue;
    if (seen++ % step != 0) continue;
    ++sampled;
    const auto at = static_cast<std::int64_t>(i);
    for (const std::size_t other :
         by_value.find(output.got[i], 2 * output.want[i].bound, most_matches)) {
      const auto there = static_cast<std::int64_t>(other);
      ++counts[{there / output.spec.cols - at / output.spec.cols,
                there % output.spec.cols - at % output.spec.cols}];
    }
  }
  std::vector<std::pair<std::size_t, Offset>> sorted;
  for (const auto& [offset, count] : counts) {
    if (10 * count >= sampled) sorted.emplace_back(count, offset);
  }
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<Offset> offsets;
  for (const auto& [count, offset] : sorted) {
    if (offsets.size() < most_offsets) offsets.push_back(offset);
  }
  return offsets;
}

/// Returns the prediction that each element has the value that another one ought to have. Elements
/// without such an element stay as they are.
template <typename From>
Prediction moved(const Evidence& evidence, std::size_t at, const From& from) {
  Prediction predicted = evidence.expected();
  const ExaminedOutput& output = evidence.outputs()[at];
  for (std::int64_t row = 0; row < output.spec.rows; ++row) {
    for (std::int64_t col = 0; col < output.spec.cols; ++col) {
      const auto [other_row, other_col] = from(row, col);
      if (other_row < 0 || other_row >= output.spec.rows || other_col < 0 ||
          other_col >= output.spec.cols)
        continue;
      predicted[at][static_cast<std::size_t>(row * output.spec.cols + col)] =
          output.want[static_cast<std::size_t>(other_row * output.spec.cols + other_col)];
    }
  }
  return predicted;
}

std::string words_of_offset(const Evidence& evidence, const TensorSpec& spec, Offset offset) {
  const auto [rows, cols] = offset;
  const auto tile = [&](std::int64_t moved_by, std::int64_t extent) {
    const std::int64_t part = part_of(evidence.failed(), extent);
    return part > 1 && moved_by != 0 && moved_by % part == 0;
  };
  const std::string what =
      rows == 0   ? fmt::format("{} column{} further on", cols, cols == 1 ? "" : "s")
      : cols == 0 ? fmt::format("{} row{} further on", rows, rows == 1 ? "" : "s")
                  : fmt::format("{} rows and {} columns further on", rows, cols);
  std::string text = fmt::format("elements of {} have the values that belong {}", spec.name, what);
  if (tile(rows, spec.rows) || tile(cols, spec.cols))
    text += ": a whole tile, stale or of another workgroup";
  return text;
}

/// Returns whether all wrong elements lie in one part of a length that begins at a multiple of it.
bool is_one_part(const ExaminedOutput& output, bool rows, std::int64_t length) {
  constexpr std::int64_t least_length = 4;
  const Place place = place_of(output, output.wrong);
  const auto& indices = rows ? place.rows : place.cols;
  return length >= least_length && indices.front() % length == 0 &&
         indices.back() < indices.front() + length;
}

void offer_offsets(Judge& judge, std::size_t at) {
  const Evidence& evidence = judge.evidence();
  const ExaminedOutput& output = evidence.outputs()[at];
  for (const Offset& offset : frequent_offsets(output)) {
    const bool one_row = offset.second == 0;
    const auto from = [&](std::int64_t row, std::int64_t col) {
      return Offset{row + offset.first, col + offset.second};
    };
    const std::int64_t part =
        part_of(evidence.failed(), one_row ? output.spec.rows : output.spec.cols);
    const std::int64_t distance = one_row ? offset.first : offset.second;
    const bool tiles =
        part > 1 ? distance % part == 0 : is_one_part(output, one_row, std::abs(distance));
    judge.offer(tiles ? "stale or wrong tile" : "shifted output",
                words_of_offset(evidence, output.spec, offset), moved(evidence, at, from), 0.97);
  }
}

void offer_transposed(Judge& judge, std::size_t at) {
  const Evidence& evidence = judge.evidence();
  const TensorSpec& spec = evidence.outputs()[at].spec;
  if (spec.rows < 2 || spec.cols < 2) return;
  const auto from = [&](std::int64_t row, std::int64_t col) {
    const std::int64_t flat = row * spec.cols + col;
    return Offset{flat % spec.rows, flat / spec.rows};
  };
  judge.offer("transposed output", fmt::format("{} is written column by column", spec.name),
              moved(evidence, at, from));
}

}  // namespace

void offer_places(Judge& judge) {
  for (std::size_t i = 0; i < judge.evidence().outputs().size(); ++i) {
    offer_transposed(judge, i);
    offer_offsets(judge, i);
  }
}

}  // namespace greta::tuner
