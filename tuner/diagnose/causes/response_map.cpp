#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/causes/in_memory.hpp"
#include "tuner/diagnose/least_squares.hpp"
#include "tuner/diagnose/responses.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

using ResponseClock = std::chrono::steady_clock;

/// How often rows (or columns) count: by index, then in place of which one.
using Counts = std::map<std::int64_t, std::map<std::int64_t, int>>;

/// An operand's rows or columns, and what impulses tell of them. The outputs have to be linear in
/// the operand: then an impulse in a row that the kernel takes for another one gives what an
/// impulse in that other one ought to give.
class MeasuredAxis {
 public:
  MeasuredAxis(Judge& judge, std::size_t operand, bool rows)
      : judge_(judge), evidence_(judge.evidence()), operand_(operand), rows_(rows) {}

  /// Returns which indices count in a wrong way; nothing if the wrong elements are not described by
  /// this, or if there is no time.
  std::optional<Counts> counts(ResponseClock::time_point end) {
    const HostTensor& own = evidence_.inputs()[operand_];
    const std::int64_t extent = rows_ ? own.spec.rows : own.spec.cols;
    find_samples();
    std::vector<const Response*> measured;
    for (std::int64_t index = Impulse::none; index < extent; ++index) {
      measured.push_back(response(index));
      if (measured.back() == nullptr) return std::nullopt;
    }
    const auto nothing = expected_with(Impulse::none), everything = expected_with(Impulse::all);
    if (samples_.empty() || nothing.empty() || everything.empty()) return std::nullopt;
    std::vector<double> sum(samples_.size(), 0);
    for (std::int64_t index = 0; index < extent; ++index) {
      if (ResponseClock::now() > end || !judge_.time_left()) return std::nullopt;
      auto column = difference(expected_with(index), nothing);
      if (column.empty()) return std::nullopt;
      for (std::size_t s = 0; s < sum.size(); ++s) sum[s] += column[s];
      if (size_of(column) == 0) continue;  // the wrong elements don't depend on it
      seen_.push_back(index);
      columns_.push_back(std::move(column));
    }
    if (columns_.empty() || !is_close(sum, difference(everything, nothing))) return std::nullopt;
    return solved(measured);
  }

 private:
  static constexpr std::size_t most_samples = 1500;

  const Response* response(std::int64_t index) const {
    const Impulse wanted{.operand = operand_, .rows = rows_, .index = index};
    for (const Response& one : evidence_.failed().responses) {
      if (one.impulse == wanted) return &one;
    }
    return nullptr;
  }
  void find_samples() {
    const std::size_t step = std::max<std::size_t>(1, evidence_.wrong() / most_samples);
    std::size_t seen = 0;
    for (std::size_t o = 0; o < evidence_.outputs().size(); ++o) {
      const ExaminedOutput& output = evidence_.outputs()[o];
      for (std::size_t i = 0; i < output.got.size(); ++i) {
        if (output.wrong[i] != 0 && seen++ % step == 0) samples_.emplace_back(o, i);
      }
    }
  }
  std::vector<double> expected_with(std::int64_t index) const {
    auto inputs = evidence_.inputs();
    inputs[operand_] =
        Impulse{.operand = operand_, .rows = rows_, .index = index}.applied_to(inputs[operand_]);
    const auto said = evidence_.recompute(inputs);
    std::vector<double> values;
    if (!said) return values;
    for (const auto& [o, i] : samples_) values.push_back((*said)[o][i].value);
    return values;
  }
  std::vector<double> values_of(const Response& one) const {
    std::vector<double> values;
    for (const auto& [o, i] : samples_) values.push_back(one.outputs[o].at(i));
    return values;
  }
  static std::vector<double> difference(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return a;
  }
  static double size_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double x : values) sum += x * x;
    return sum;
  }
  /// Within what rounding in 16 bits gives.
  static bool is_close(const std::vector<double>& a, const std::vector<double>& b) {
    constexpr double most_share = 1e-4;
    return size_of(difference(a, b)) <= most_share * std::max(size_of(a), size_of(b));
  }

  std::optional<Counts> solved(const std::vector<const Response*>& measured) const {
    Counts found;
    for (const std::int64_t index : seen_) found[index];
    const auto nothing = values_of(*measured.front());
    for (std::size_t m = 1; m < measured.size(); ++m) {
      const auto from = static_cast<std::int64_t>(m) - 1;
      const auto given = difference(values_of(*measured[m]), nothing);
      const double size = size_of(given);
      if (!std::isfinite(size)) return std::nullopt;
      if (size == 0) continue;
      const auto own = std::find(seen_.begin(), seen_.end(), from);
      if (own != seen_.end() &&
          is_close(given, columns_[static_cast<std::size_t>(own - seen_.begin())])) {
        found[from][from] = 1;
        continue;
      }
      const auto times = least_squares(columns_, given);
      std::vector<double> sum(given.size(), 0);
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        const double rounded = std::round(times[c]);
        if (!(std::abs(times[c] - rounded) < 0.1)) return std::nullopt;
        if (rounded == 0) continue;
        found[seen_[c]][from] = static_cast<int>(rounded);
        for (std::size_t s = 0; s < sum.size(); ++s) sum[s] += rounded * columns_[c][s];
      }
      if (!is_close(sum, given)) return std::nullopt;
    }
    // If none counts, no index is wrong.
    if (std::all_of(found.begin(), found.end(), [](const auto& one) { return one.second.empty(); }))
      return std::nullopt;
    std::erase_if(found, [](const auto& one) {
      return one.second == std::map<std::int64_t, int>{{one.first, 1}};
    });
    return found;
  }

  Judge& judge_;
  const Evidence& evidence_;
  std::size_t operand_;
  bool rows_;
  std::vector<std::pair<std::size_t, std::size_t>> samples_;  ///< wrong elements: output and place
  std::vector<std::int64_t> seen_;                            ///< on which these depend
  std::vector<std::vector<double>> columns_;                  ///< what these ought to give
};

/// The kind and the words of indices that count in a wrong way.
class CountsWords {
 public:
  CountsWords(const Evidence& evidence, const TensorSpec& spec, bool rows, const Counts& counts)
      : extent_(rows ? spec.rows : spec.cols),
        axis_(rows ? "rows" : "columns"),
        name_(spec.name),
        part_(part_of(evidence.failed(), extent_)) {
    for (const auto& [index, from] : counts) {
      indices_.push_back(index);
      const bool one = from.size() == 1 && from.begin()->second == 1;
      never_ = never_ && from.empty();
      twice_ = twice_ && from == std::map<std::int64_t, int>{{index, 2}};
      moved_ = moved_ && one;
      sources_.push_back(from.empty() ? Impulse::none : from.begin()->first);
    }
    for (const auto& [name, length] : evidence.problem().dims) {
      if (length != extent_ || *closes_ != 0) continue;
      axis_ = fmt::format("{} ({}", name, axis_);
      closes_ = ")";
    }
  }

  std::pair<std::string, std::string> said() const {
    const std::string which = fmt::format("{} of {}{} {}", axis_, name_, closes_,
                                          words_of_indices(indices_, extent_, part_));
    const bool tail = indices_.back() == extent_ - 1;
    if (never_)
      return {tail && is_range(indices_) ? "missing tail" : "missing slice", which + " is skipped"};
    if (twice_) return {"doubled slice", which + " counts twice"};
    if (!moved_) return {"wrong index", fmt::format("{} count with others, or not at all", which)};
    const std::int64_t by = sources_.front() - indices_.front();
    if (moves_by(by)) return shifted(by, which, tail);
    if (std::all_of(sources_.begin(), sources_.end(),
                    [&](std::int64_t from) { return from == sources_.front(); }))
      return {"wrong index",
              fmt::format("{} of {} is read in place of {}", sources_.front(), name_, which)};
    if (const auto stride = strided(); !stride.empty())
      return {"wrong stride", fmt::format("{} of {}{}: {}", axis_, name_, closes_, stride)};
    return {"wrong index",
            fmt::format("{}: {} are read in place of them", which, listed(sources_))};
  }

 private:
  static bool is_range(const std::vector<std::int64_t>& sorted) {
    return sorted.back() - sorted.front() + 1 == static_cast<std::int64_t>(sorted.size());
  }
  static std::string listed(const std::vector<std::int64_t>& all) {
    constexpr std::size_t most = 6;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, all.size()); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ", ", all[i]);
    return all.size() > most ? text + fmt::format(" and {} more", all.size() - most) : text;
  }
  bool moves_by(std::int64_t by) const {
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      if (sources_[i] - indices_[i] != by) return false;
    }
    return true;
  }
  std::pair<std::string, std::string> shifted(std::int64_t by, const std::string& which,
                                              bool tail) const {
    const auto count = static_cast<std::int64_t>(indices_.size());
    const bool part = is_range(indices_) && count < extent_ - std::abs(by);
    if (part && by < 0 && count <= -by) {
      return {"stale or wrong tile",
              fmt::format("{}: those {} before, of an earlier tile, are used in place of {}", which,
                          -by, tail ? "the last ones" : "them")};
    }
    return {"shifted operand", fmt::format("{}: those {} too {} are read", which, std::abs(by),
                                           by > 0 ? "far" : "early")};
  }
  /// Describes sources that are a multiple of the indices and a constant.
  std::string strided() const {
    const std::int64_t apart = indices_.back() - indices_.front(),
                       moved = sources_.back() - sources_.front();
    if (apart == 0 || moved % apart != 0 || indices_.size() < 3) return "";
    for (std::size_t i = 0; i < indices_.size(); ++i) {
      if (sources_[i] != sources_.front() + (indices_[i] - indices_.front()) * (moved / apart))
        return "";
    }
    return fmt::format("every {}th one is read from {} on, in place of each from {} on",
                       moved / apart, sources_.front(), indices_.front());
  }

  std::int64_t extent_;
  std::string axis_, name_;
  const char* closes_ = "";
  std::int64_t part_;
  std::vector<std::int64_t> indices_, sources_;
  bool never_ = true, twice_ = true, moved_ = true;
};

/// Offers that an operand is read as the counts say, in all elements.
void offer_counts(Judge& judge, std::size_t operand, bool rows, const Counts& counts) {
  const TensorSpec& spec = judge.evidence().inputs()[operand].spec;
  const HostTensor& own = judge.evidence().inputs()[operand];
  const auto value = [&](std::int64_t row, std::int64_t col) {
    const auto at = [&](std::int64_t index) {
      return own.at(
          static_cast<std::size_t>(rows ? index * spec.cols + col : row * spec.cols + index));
    };
    const auto found = counts.find(rows ? row : col);
    if (found == counts.end()) return at(rows ? row : col);
    double sum = 0;
    for (const auto& [from, times] : found->second) sum += times * at(from);
    return sum;
  };
  const auto [kind, words] = CountsWords(judge.evidence(), spec, rows, counts).said();
  judge.offer_inputs(kind, words, replaced(judge.evidence(), operand, value));
}

}  // namespace

void offer_responses(Judge& judge) {
  constexpr double share = 0.3;  // which leaves time for other hypotheses
  const Evidence& evidence = judge.evidence();
  std::vector<std::pair<std::size_t, bool>> axes;
  for (const Response& one : evidence.failed().responses) {
    const std::pair axis(one.impulse.operand, one.impulse.rows);
    if (axes.empty() || axes.back() != axis) axes.push_back(axis);
  }
  if (axes.empty()) return;
  const auto begin = ResponseClock::now(), end = judge.end_of_share(share);
  static_cast<void>(evidence.recompute(evidence.inputs()));
  const auto of_one = ResponseClock::now() - begin;
  for (const auto& [operand, rows] : axes) {
    const TensorSpec& spec = evidence.inputs()[operand].spec;
    const std::int64_t references = (rows ? spec.rows : spec.cols) + 2;
    if (ResponseClock::now() + references * of_one > end) continue;
    const auto counts = MeasuredAxis(judge, operand, rows).counts(end);
    if (counts && !counts->empty()) offer_counts(judge, operand, rows, *counts);
  }
}

}  // namespace greta::tuner
