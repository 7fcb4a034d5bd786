#include "tuner/diagnose/changes/case_reduction.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "kernels/reference/findings.hpp"
#include "kernels/reference/roundoff.hpp"
#include "tuner/compile/element.hpp"
#include "tuner/compile/run_case.hpp"
#include "tuner/diagnose/changes/shared_file.hpp"

namespace greta::tuner {
namespace {

using Contents = std::vector<std::vector<std::byte>>;
using Determined = std::vector<std::vector<char>>;

class Reducer {
 public:
  Reducer(Device& device, const KernelCase& run, Deadline deadline)
      : run_(run), loaded_(device, run_), deadline_(deadline) {}

  CaseReduction reduce() {
    auto contents = loaded_.contents(deadline_);
    if (!contents) return {};
    whole_ = *std::move(contents);
    note_elements();
    auto last = reduced_launch(run_.launches.size() - 1, {});
    if (!last) return {};
    for (std::size_t i = run_.launches.size() - 1; i > 0 && has_both(*last); --i) {
      if (auto earlier = reduced_launch(i - 1, *last)) last = std::move(earlier);
    }
    // Elements that differ between runs are not determined.
    const auto again = determined();
    if (!again || !keeps(*again, *last)) return {};
    CaseReduction reduction;
    for (const CaseLaunch& launch : run_.launches) reduction.grids.push_back(launch.grid);
    spread(*last, reduction.determined);
    return reduction;
  }

 private:
  static constexpr char right = 1, wrong = 2;

  /// Notes which elements are wrong, and which were written.
  void note_elements() {
    std::size_t at = 0;
    for (const CaseBuffer& buffer : run_.buffers) {
      if (buffer.expected.empty()) continue;
      const std::vector<std::byte>& found = whole_[at++];
      const std::vector<std::byte> filled(buffer.data.empty() ? buffer.bytes : 0, buffer.fill);
      const std::byte* const before = (buffer.data.empty() ? filled : buffer.data).data();
      const std::size_t size = element_bytes(buffer.dtype);
      auto& kinds = kinds_.emplace_back();
      auto& written = written_.emplace_back();
      for (std::size_t i = 0; i < buffer.expected.size(); ++i) {
        const double value = load_element(buffer.dtype, found.data(), i);
        kinds.push_back(kernels::accepts(buffer.expected[i], value) ? right : wrong);
        written.push_back(std::memcmp(&found[i * size], before + i * size, size) != 0 ? 1 : 0);
      }
    }
  }

  /// Returns which elements, as `right` or `wrong`, the launches determine as all workgroups do:
  /// those that are written with the same bits, and the wrong ones between two such elements that
  /// are never written.
  std::optional<Determined> determined() {
    const auto contents = loaded_.contents(deadline_);
    if (!contents) return std::nullopt;
    Determined all;
    std::size_t at = 0;
    for (const CaseBuffer& buffer : run_.buffers) {
      if (buffer.expected.empty()) continue;
      const std::size_t size = element_bytes(buffer.dtype), count = buffer.expected.size();
      auto& found = all.emplace_back(count, 0);
      std::size_t after_written = 0;  // an element with the same bits; 0: none
      for (std::size_t i = 0; i < count; ++i) {
        const bool same = std::memcmp(&(*contents)[at][i * size], &whole_[at][i * size], size) == 0;
        if (written_[at][i] == 0) {
          if (!same) after_written = 0;
          continue;
        }
        if (same) found[i] = kinds_[at][i];
        for (std::size_t k = after_written; same && k > 0 && k < i; ++k)
          found[k] = kinds_[at][k] == wrong ? wrong : char{0};
        after_written = same ? i + 1 : 0;
      }
      ++at;
    }
    return all;
  }

  static bool has(const std::vector<char>& one, char kind) {
    return std::find(one.begin(), one.end(), kind) != one.end();
  }
  /// Whether there are right ones in a buffer with wrong ones.
  static bool has_both(const Determined& all) {
    return std::any_of(all.begin(), all.end(),
                       [](const auto& one) { return has(one, wrong) && has(one, right); });
  }
  /// Whether all of `least` in buffers with wrong elements is in `found`; if that is empty, whether
  /// there are wrong ones.
  static bool keeps(const Determined& found, const Determined& least) {
    if (least.empty())
      return std::any_of(found.begin(), found.end(),
                         [](const auto& one) { return has(one, wrong); });
    for (std::size_t b = 0; b < least.size(); ++b) {
      if (!has(least[b], wrong)) continue;
      for (std::size_t i = 0; i < least[b].size(); ++i) {
        if (least[b][i] != 0 && found[b][i] != least[b][i]) return false;
      }
    }
    return true;
  }

  /// Reduces the grid of a launch: to the fewest workgroups of all dimensions alike, then of each.
  /// Returns what is determined then; nothing if the grid stays as it is.
  std::optional<Determined> reduced_launch(std::size_t launch, const Determined& least) {
    Grid& grid = run_.launches[launch].grid;
    const Grid whole = grid;
    std::optional<Determined> best;
    const auto accept = [&](const Grid& tried) {
      const Grid before = std::exchange(grid, tried);
      auto found = determined();
      if (found && keeps(*found, least)) {
        best = std::move(found);
        return true;
      }
      grid = before;
      return false;
    };
    for (std::uint32_t most = 1;; most *= 2) {
      Grid tried = whole;
      for (std::uint32_t& count : tried) count = std::min(count, most);
      if (tried == whole || accept(tried)) break;
    }
    for (std::size_t d = 0; d < grid.size(); ++d) {
      Grid one = grid;
      one[d] = 1;
      if (grid[d] > 1) accept(one);
    }
    return best;
  }

  void spread(const Determined& found, std::vector<std::vector<char>>& all) const {
    std::size_t at = 0;
    for (const CaseBuffer& buffer : run_.buffers)
      all.push_back(buffer.expected.empty() ? std::vector<char>() : found[at++]);
  }

  KernelCase run_;
  LoadedCase loaded_;
  Deadline deadline_;
  Contents whole_;                                  ///< what all workgroups compute
  std::vector<std::vector<char>> kinds_, written_;  ///< of the elements
};

constexpr char end_mark = '.';  // no mark of an element

}  // namespace

void CaseReduction::apply(KernelCase& run) const {
  for (std::size_t i = 0; i < grids.size(); ++i) run.launches[i].grid = grids[i];
  for (std::size_t b = 0; b < determined.size(); ++b) {
    for (std::size_t i = 0; i < determined[b].size(); ++i) {
      if (determined[b][i] == 0) run.buffers[b].expected[i] = kernels::reference::anything;
    }
  }
}

void CaseReduction::write(const SharedFile& file) const {
  file.put(grids.data(), grids.size() * sizeof(Grid));
  for (const auto& marks : determined) file.put(marks.data(), marks.size());
  file.put(&end_mark, sizeof end_mark);
}

void CaseReduction::read(SharedFile& file) {
  grids = file.get<Grid>();
  determined.clear();
  while (file.has_more()) determined.push_back(file.get<char>());
  if (determined.empty() || determined.back() != std::vector<char>{end_mark})
    throw Error("the reduction of a case lacks");
  determined.pop_back();
}

CaseReduction reduced_case(Device& device, const KernelCase& run, Deadline deadline) {
  return Reducer(device, run, deadline).reduce();
}

}  // namespace greta::tuner
