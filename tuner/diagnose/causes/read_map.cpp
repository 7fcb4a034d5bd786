#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

using Clock = std::chrono::steady_clock;

/// The references of all probes take at most this long, which leaves time for other hypotheses.
constexpr std::chrono::seconds most_time{10};
constexpr double least_share = 0.3, most_of = 0.9;
constexpr std::int64_t none = -1, several = -2;  ///< in place of an index

/// The row and column of an operand that an element is computed from.
struct Source {
  std::int64_t row = none, col = none;

  bool known() const { return row >= 0 || col >= 0; }
  bool whole() const { return row >= 0 && col >= 0; }
  bool operator==(const Source&) const = default;
};

/// An element of an output, with what it ought to be computed from and what it is.
struct Read {
  std::int64_t out_row = 0, out_col = 0;
  Source want, got;
};

/// The map of one operand. Indices that many elements are computed from are left out.
class ReadMap {
 public:
  ReadMap(const Evidence& evidence, const HostTensor& operand, std::size_t output)
      : evidence_(evidence), operand_(operand), output_(output) {}

  const std::string& name() const { return operand_.spec.name; }

  /// Returns whether the operand has probes and there was time for their references.
  bool read(Clock::time_point end) {
    const std::size_t count = examined().want.size();
    std::vector<Source> want(count, Source{0, 0}), got(count, Source{0, 0});
    bool any = false;
    for (const bool rows : {true, false}) {
      for (int bit = 0;; ++bit) {
        const Probe* const with = find(rows, bit, true);
        const Probe* const without = find(rows, bit, false);
        if (with == nullptr || without == nullptr) break;
        if (Clock::now() > end) return false;
        const auto said_with = changed_reference(*with), said_without = changed_reference(*without);
        if (!said_with || !said_without) return false;
        any = true;
        for (std::size_t i = 0; i < count; ++i) {
          add_bit(rows ? want[i].row : want[i].col, bit, (*said_with)[i], (*said_without)[i]);
          add_bit(rows ? got[i].row : got[i].col, bit, with->changed[output_][i],
                  without->changed[output_][i]);
        }
      }
    }
    if (any) sort_out(want, got);
    return any;
  }

  const std::vector<Read>& moved() const { return moved_; }  ///< computed from another element
  std::size_t lost() const { return lost_; }                 ///< that don't depend on the operand
  std::size_t mixed() const { return mixed_; }               ///< that depend on several
  std::size_t same() const { return same_; }
  bool whole() const { return whole_; }  ///< whether rows and columns are known
  /// Whether what is found of correct elements is what is expected of them.
  bool reliable() const { return correct_ < 8 || 20 * odd_correct_ <= correct_; }

 private:
  const ExaminedOutput& examined() const { return evidence_.outputs()[output_]; }

  const Probe* find(bool rows, int bit, bool set) const {
    for (const Probe& probe : evidence_.failed().probes) {
      if (probe.operand == name() && probe.rows == rows && probe.bit == bit && probe.set == set)
        return &probe;
    }
    return nullptr;
  }

  std::optional<std::vector<char>> changed_reference(const Probe& probe) const {
    auto inputs = evidence_.inputs();
    for (HostTensor& input : inputs) {
      if (input.spec.name == name()) input = probed(input, probe);
    }
    const auto said = evidence_.recompute(inputs);
    if (!said) return std::nullopt;
    std::vector<char> marks(examined().want.size(), 0);
    for (std::size_t i = 0; i < marks.size(); ++i)
      marks[i] = (*said)[output_][i].value != examined().want[i].value ? 1 : 0;
    return marks;
  }

  static void add_bit(std::int64_t& index, int bit, char with, char without) {
    if (index < 0) return;
    if (with != 0 && without != 0) {
      index = several;
    } else if (with == 0 && without == 0) {
      index = none;
    } else if (with != 0) {
      index |= std::int64_t{1} << bit;
    }
  }

  void sort_out(const std::vector<Source>& want, const std::vector<Source>& got) {
    const ExaminedOutput& output = examined();
    for (const Expected& one : output.want) {
      if (std::isfinite(one.value)) largest_ = std::max(largest_, std::abs(one.value));
    }
    for (std::size_t i = 0; i < want.size(); ++i) {
      if (!std::isfinite(output.got_with_finite_guards[i]) || output.varies[i] != 0 ||
          output.unwritten[i] != 0 || !want[i].known())
        continue;
      Source must = want[i], has = got[i];
      // An index that many contribute to tells nothing.
      if (must.row < 0) must.row = has.row = none;
      if (must.col < 0) must.col = has.col = none;
      if (output.wrong[i] == 0) {
        ++correct_;
        odd_correct_ += must == has ? 0 : 1;
        continue;
      }
      whole_ = whole_ && must.whole();
      if (must == has) {
        ++same_;
      } else if (has.row == several || has.col == several) {
        ++mixed_;
      } else if ((must.row >= 0 && has.row < 0) || (must.col >= 0 && has.col < 0)) {
        // In a result that is far too large, rounding hides a summand.
        if (std::abs(output.got_with_finite_guards[i]) <= 4 * largest_) ++lost_;
      } else {
        const auto at = static_cast<std::int64_t>(i);
        moved_.push_back({at / output.spec.cols, at % output.spec.cols, must, has});
      }
    }
  }

  const Evidence& evidence_;
  const HostTensor& operand_;
  std::size_t output_;
  std::vector<Read> moved_;
  std::size_t lost_ = 0, mixed_ = 0, same_ = 0, correct_ = 0, odd_correct_ = 0;
  bool whole_ = true;
  double largest_ = 0;  ///< of the expected magnitudes
};

std::string words_of(const Source& source) {
  if (source.whole()) return fmt::format("({}, {})", source.row, source.col);
  return source.row >= 0 ? fmt::format("row {}", source.row) : fmt::format("column {}", source.col);
}

/// Returns whether most elements agree with a description of where they are read.
template <typename Fits>
bool most_fit(const std::vector<Read>& reads, const Fits& fits) {
  const auto count = std::count_if(reads.begin(), reads.end(), fits);
  return static_cast<double>(count) >= most_of * static_cast<double>(reads.size());
}

/// Describes by which rule an operand is read at other places: the kind and the words.
std::pair<std::string, std::string> rule_of(const std::string& name,
                                            const std::vector<Read>& reads) {
  const Read& first = reads[reads.size() / 2];
  const std::int64_t rows = first.got.row - first.want.row, cols = first.got.col - first.want.col;
  if (most_fit(reads, [&](const Read& one) {
        return one.got.row - one.want.row == rows && one.got.col - one.want.col == cols;
      })) {
    return {"shifted operand", fmt::format("{} is read {}{}{} further on", name,
                                           rows != 0 ? fmt::format("{} rows", rows) : "",
                                           rows != 0 && cols != 0 ? " and " : "",
                                           cols != 0 ? fmt::format("{} columns", cols) : "")};
  }
  const bool many_rows = std::any_of(reads.begin(), reads.end(),
                                     [&](const Read& one) { return one.want != first.want; });
  if (many_rows && most_fit(reads, [&](const Read& one) { return one.got == first.got; })) {
    return {"wrong index",
            fmt::format("{} of {} is read in place of others", words_of(first.got), name)};
  }
  // got = numerator / denominator × want + summand, by the rows that are farthest apart
  for (const bool by_row : {true, false}) {
    const auto want = [&](const Read& one) { return by_row ? one.want.row : one.want.col; };
    const auto got = [&](const Read& one) { return by_row ? one.got.row : one.got.col; };
    const auto [low, high] =
        std::minmax_element(reads.begin(), reads.end(),
                            [&](const Read& a, const Read& b) { return want(a) < want(b); });
    const std::int64_t apart = want(*high) - want(*low), moved = got(*high) - got(*low);
    if (apart < 2 || moved == apart) continue;
    if (most_fit(reads, [&](const Read& one) {
          return (got(one) - got(*low)) * apart == (want(one) - want(*low)) * moved;
        })) {
      return {"wrong stride",
              fmt::format(
                  "{} is read with another stride: {} {} in place of {}, and {} in place of {}",
                  name, by_row ? "row" : "column", got(*low), want(*low), got(*high), want(*high))};
    }
  }
  return {"wrong index", fmt::format("{} is read from other places than it ought to be", name)};
}

/// The maps of all operands for one output.
class ReadMaps {
 public:
  ReadMaps(Judge& judge, std::size_t output) : judge_(judge), output_(output) {}

  void offer(Clock::time_point end) {
    const Evidence& evidence = judge_.evidence();
    std::size_t floating = 0;
    for (const HostTensor& input : evidence.inputs()) {
      if (!is_floating(input.spec.dtype)) continue;
      ++floating;
      ReadMap map(evidence, input, output_);
      if (map.read(end) && map.reliable()) maps_.push_back(std::move(map));
    }
    if (maps_.empty()) return;
    offer_moved();
    offer_lost();
    offer_mixed();
    if (maps_.size() == floating) offer_right();
  }

 private:
  double share(std::size_t count) const {
    return static_cast<double>(count) / static_cast<double>(judge_.evidence().wrong());
  }
  const std::string& name() const { return judge_.evidence().outputs()[output_].spec.name; }

  void add(const std::string& kind, const std::string& words, double explained, double weight,
           std::string evidence) {
    judge_.add({.kind = kind,
                .words = words,
                .explained = explained,
                .residual = 1,
                .score = weight * explained,
                .evidence = std::move(evidence)});
  }

  void offer_moved() {
    std::vector<const ReadMap*> moved;
    for (const ReadMap& map : maps_) {
      if (!map.moved().empty() && share(map.moved().size()) >= least_share) moved.push_back(&map);
    }
    for (const ReadMap* const map : moved) {
      const auto [kind, words] = rule_of(map->name(), map->moved());
      const Read& one = map->moved()[map->moved().size() / 2];
      // What is shifted as a whole is better described by the values that this gives.
      add(kind, words, share(map->moved().size()), kind == "shifted operand" ? 0.77 : 0.9,
          fmt::format("({}, {}) of {} is computed from {} of {}, not from {}", one.out_row,
                      one.out_col, name(), words_of(one.got), map->name(), words_of(one.want)));
    }
    if (moved.size() < 2) return;
    const Read& one = moved.front()->moved()[moved.front()->moved().size() / 2];
    add("wrong index",
        fmt::format("elements of {} are stored at the places of others, or all operands are read "
                    "there: where a thread's elements lie is wrong",
                    name()),
        share(moved.front()->moved().size()), 0.92,
        fmt::format("({}, {}) of {} is computed from {} of {}, not from {}", one.out_row,
                    one.out_col, name(), words_of(one.got), moved.front()->name(),
                    words_of(one.want)));
  }

  void offer_lost() {
    std::string names;
    std::size_t least = 0, count = 0;
    for (const ReadMap& map : maps_) {
      if (share(map.lost()) < least_share) continue;
      names += (names.empty() ? "" : ", ") + map.name();
      least = count++ == 0 ? map.lost() : std::min(least, map.lost());
    }
    if (count == 0) return;
    add("ignored operand",
        count == maps_.size() && count > 1
            ? fmt::format(
                  "elements of {} depend on no operand: nothing is loaded for them, or what "
                  "is loaded is not used",
                  name())
            : fmt::format("{} is not read where it ought to be: its elements are never loaded, "
                          "loaded from outside of it, or not used",
                          names),
        share(least), 0.87,
        fmt::format("{} of {} wrong elements do not change with {}", least,
                    judge_.evidence().wrong(), names));
  }

  void offer_mixed() {
    for (const ReadMap& map : maps_) {
      if (share(map.mixed()) < least_share) continue;
      add("wrong index",
          fmt::format("several elements of {} contribute to an element of {}, which only one ought "
                      "to",
                      map.name(), name()),
          share(map.mixed()), 0.7,
          fmt::format("{} of {} wrong elements change with them", map.mixed(),
                      judge_.evidence().wrong()));
    }
  }

  /// If all elements are computed from their own ones, no address is wrong.
  void offer_right() {
    const auto right = [&](const ReadMap& map) { return map.whole() && share(map.same()) >= 0.95; };
    if (!std::all_of(maps_.begin(), maps_.end(), right)) return;
    judge_.doubt({"wrong stride", "wrong index", "shifted operand", "shifted output",
                  "stale or wrong tile", "transposed operand", "wrong head or batch"},
                 0.5);
    add("wrong formula",
        fmt::format("each element of {} is computed from its own elements of all operands: no "
                    "address is wrong, but the arithmetic",
                    name()),
        share(maps_.front().same()), 0.65, "the results change with these elements alone");
  }

  Judge& judge_;
  std::size_t output_;
  std::vector<ReadMap> maps_;
};

}  // namespace

void offer_read_map(Judge& judge) {
  const auto& outputs = judge.evidence().outputs();
  if (judge.evidence().failed().probes.empty()) return;
  const auto end = Clock::now() + most_time;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].count(outputs[i].wrong) > 0) ReadMaps(judge, i).offer(end);
  }
}

}  // namespace greta::tuner
