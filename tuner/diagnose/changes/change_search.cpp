#include "tuner/diagnose/changes/change_search.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "tuner/diagnose/changes/change_trials.hpp"
#include "tuner/diagnose/changes/group_search.hpp"
#include "tuner/diagnose/changes/kernel_text.hpp"
#include "tuner/diagnose/changes/trying_process.hpp"

namespace greta::tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int look_ms = 100;
constexpr char ready_mark = '+';  // the kernels are compiled, and the device is open

/// Returns why a case can't be run again with changes; empty: it can. A process of its own opens
/// the device, since a driver's threads don't live on in the processes that are forked later.
std::string reason_against(const Catalog& catalog, const FailedCase& failed) {
  TryingProcess process(0, 1);
  const bool started = process.start([&](std::size_t, std::size_t, int descriptor) {
    std::string why;
    try {
      ChangeTrials trials(catalog, failed);
      static_cast<void>(!write(descriptor, &ready_mark, 1));  // what ends the process now fails
      if (!trials.fails_unchanged()) why = "the unchanged source gives correct results here";
    } catch (const std::exception& error) {
      why = error.what();
    }
    why += '\n';
    static_cast<void>(!write(descriptor, why.data(), why.size()));
  });
  if (!started) return "no process to try changes of the source in";
  std::string why;
  pollfd wait{process.descriptor(), POLLIN, 0};
  while (!process.silent()) {
    if (poll(&wait, 1, look_ms) <= 0) continue;
    std::array<char, 4096> block{};
    const auto count = ::read(process.descriptor(), block.data(), block.size());
    if (count <= 0) break;
    why.append(block.data(), static_cast<std::size_t>(count));
  }
  const bool ready = why.starts_with(ready_mark);
  if (!why.ends_with('\n')) return ready ? "" : "the case's kernel can't be compiled and run again";
  return why.substr(ready ? 1 : 0, why.size() - (ready ? 2 : 1));
}

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class Search {
 public:
  Search(const Catalog& catalog, const FailedCase& failed, double seconds)
      : catalog_(catalog), failed_(failed), end_(after(seconds)), group_end_(after(seconds * 0.8)) {
    for (std::size_t i = 0; i < failed.sources.size(); ++i) {
      const KernelSource source =
          read_kept_source(failed.sources[i], failed.kernel.language).value();
      texts_.push_back(source.text);
      slots_.push_back(slots_of(source.text, source.entry));
      for (SourceChange& change : changes_of(texts_.back(), source.entry))
        changes_.push_back({i, std::move(change)});
    }
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const auto& a, const auto& b) { return a.change.rank < b.change.rank; });
    outcomes_.resize(changes_.size(), ChangeOutcome::untried);
  }

  ChangeSearch run() {
    result_.changes = changes_.size();
    try_in_groups();
    if (!found()) {
      try_one_by_one(order_of([&](std::size_t i) {
        return outcomes_[i] == ChangeOutcome::untried && changes_[i].change.rank < last_in_groups;
      }));
    }
    result_.all = std::none_of(outcomes_.begin(), outcomes_.end(), [](ChangeOutcome outcome) {
      return outcome == ChangeOutcome::untried;
    });
    if (found()) result_.found = described(changes_[best_]);
    if (result_.found) result_.found->with_others = best_outcome_ == ChangeOutcome::correct;
    return std::move(result_);
  }

 private:
  static constexpr std::size_t most_numbers = 31000;
  static constexpr int last_in_groups = 3;  ///< rank of the least likely changes

  bool found() const { return best_ < changes_.size(); }

  template <typename Accept>
  std::vector<std::size_t> order_of(const Accept& accept) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (accept(i)) order.push_back(i);
    }
    return order;
  }

  /// Returns how many changes a build of a kernel may have. Drivers compile large kernels with many
  /// branches slowly.
  std::size_t most_of_group(std::size_t kernel) const {
    constexpr std::size_t large_text = 16000, few = 20, many = 100;
    const bool slow =
        failed_.kernel.language == Language::glsl && texts_[kernel].size() > large_text;
    return slow ? few : many;
  }

  /// Tries many changes with one compilation, the most likely first, and confirms those with which
  /// results are correct.
  void try_in_groups() {
    for (int rank = 0; rank <= last_in_groups && !found() && Clock::now() < group_end_; ++rank) {
      std::vector<ChangeGroup> groups;
      for (std::size_t kernel = 0; kernel < texts_.size(); ++kernel) {
        std::vector<SourceChange> changes;
        std::vector<std::uint32_t> numbers;
        for (std::size_t i = 0; i < std::min(changes_.size(), most_numbers); ++i) {
          if (changes_[i].kernel != kernel || changes_[i].change.rank != rank) continue;
          changes.push_back(changes_[i].change);
          numbers.push_back(static_cast<std::uint32_t>(i + 1));
        }
        if (changes.empty()) continue;
        kept_changes_.push_back(std::make_unique<std::vector<SourceChange>>(std::move(changes)));
        for (auto& group :
             change_groups(*kept_changes_.back(), numbers, slots_[kernel], most_of_group(kernel)))
          groups.push_back({kernel, std::move(group)});
      }
      // Short kernels compile fast, so that these are soon done.
      std::stable_sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) {
        return texts_[a.kernel].size() < texts_[b.kernel].size();
      });
      const auto outcomes = try_groups(failed_, groups, changes_.size() + 1, group_end_);
      for (std::size_t i = 0; i < changes_.size(); ++i) {
        const ChangeOutcome outcome = outcomes[i + 1];
        if (outcome == ChangeOutcome::untried) continue;
        outcomes_[i] = outcome;
        ++result_.tried;
        ++result_.compiled;
      }
      try_one_by_one(order_of([&](std::size_t i) {
        return changes_[i].change.rank == rank && outcomes_[i] == ChangeOutcome::correct_here;
      }));
    }
  }

  /// Tries changes in the given order, until one is correct.
  void try_one_by_one(std::vector<std::size_t> order) {
    order_ = std::move(order);
    best_place_ = order_.size();
    const std::size_t count = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
    std::vector<std::unique_ptr<TryingProcess>> processes;
    for (std::size_t i = 0; i < count; ++i)
      processes.push_back(std::make_unique<TryingProcess>(i, count));
    while (Clock::now() < end_) {
      std::vector<pollfd> waits;
      for (const auto& process : processes) {
        if (!process->runs() && process->may_start() && process->next() < limit()) start(*process);
        if (process->runs()) waits.push_back({process->descriptor(), POLLIN, 0});
      }
      if (waits.empty()) break;
      poll(waits.data(), waits.size(), look_ms);
      for (const auto& process : processes) {
        const auto ready = std::find_if(waits.begin(), waits.end(), [&](const pollfd& one) {
          return one.fd == process->descriptor() && one.revents != 0;
        });
        if (process->runs()) serve(*process, ready != waits.end());
      }
    }
    if (best_place_ < order_.size()) best_ = order_[best_place_];
  }

  /// The changes before which a process goes on: after a correct one, only earlier ones matter.
  std::size_t limit() const { return best_place_; }

  void start(TryingProcess& process) {
    const bool started = process.start([this](std::size_t next, std::size_t step, int descriptor) {
      try_from(next, step, descriptor);
    });
    if (!started) throw Error("no process to try changes of the source in");
  }

  /// What a process does.
  void try_from(std::size_t next, std::size_t step, int descriptor) {
    try {
      ChangeTrials trials(catalog_, failed_);
      const Report ready;
      if (write(descriptor, &ready, sizeof ready) != sizeof ready) return;
      for (std::size_t i = next; i < order_.size(); i += step) {
        const Report report{static_cast<std::uint32_t>(i), trials.outcome_of(changes_[order_[i]])};
        if (write(descriptor, &report, sizeof report) != sizeof report) return;
        if (report.outcome == ChangeOutcome::hangs) return;
      }
    } catch (const std::exception&) {  // its end says so
    }
  }

  void count(std::size_t place, ChangeOutcome outcome) {
    ChangeOutcome& known = outcomes_[order_[place]];
    if (known == ChangeOutcome::untried) {
      ++result_.tried;
      if (outcome != ChangeOutcome::refused) ++result_.compiled;
    }
    known = outcome;
  }

  void serve(TryingProcess& process, bool ready) {
    if (ready) {
      const auto report = process.read_report();
      if (!report) {
        const std::size_t place = process.next();
        if (place >= limit()) {
          process.stop();
        } else if (process.stop_and_skip()) {
          count(place, ChangeOutcome::hangs);
        }
        return;
      }
      if (report->change == Report::none) return;
      count(report->change, report->outcome);
      if (report->outcome >= ChangeOutcome::correct_here && report->change < best_place_) {
        best_place_ = report->change;
        best_outcome_ = report->outcome;
      }
      if (process.next() >= limit()) process.stop();
    } else if (process.silent()) {
      const std::size_t place = process.next();
      if (process.stop_and_skip()) count(place, ChangeOutcome::hangs);
    }
  }

  FoundChange described(const KernelChange& one) const {
    const std::string& text = texts_[one.kernel];
    const SourceChange& change = one.change;
    FoundChange found;
    found.kind = change.kind;
    found.kernel = kept_source_file(one.kernel, failed_.kernel.language);
    const auto lines_before =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(change.start), '\n');
    found.line = static_cast<std::size_t>(lines_before) + 2;  // the comment on the launch is first
    found.before = text.substr(change.start, change.length);
    found.after = change.by;
    const std::string changed = change.applied_to(text);
    const auto begin = changed.rfind('\n', change.start) + 1;
    const auto end = changed.find('\n', change.start + change.by.size());
    found.text = changed.substr(begin, end - begin);
    found.text.erase(0, found.text.find_first_not_of(" \t\n"));
    return found;
  }

  const Catalog& catalog_;
  const FailedCase& failed_;
  Clock::time_point end_, group_end_;
  std::vector<std::string> texts_;
  std::vector<std::vector<ChangeSlot>> slots_;                            ///< of each text
  std::vector<std::unique_ptr<std::vector<SourceChange>>> kept_changes_;  ///< those of groups
  std::vector<KernelChange> changes_;
  std::vector<ChangeOutcome> outcomes_;
  ChangeSearch result_;
  std::vector<std::size_t> order_;                   ///< of changes that are tried one by one
  std::size_t best_place_ = 0;                       ///< in the order
  std::size_t best_ = static_cast<std::size_t>(-1);  ///< the first change that is correct
  ChangeOutcome best_outcome_{};
};

}  // namespace

Result<ChangeSearch> search_change(const Catalog& catalog, const FailedCase& failed,
                                   double seconds) {
  if (failed.sources.empty() || failed.kernel.launches.empty())
    return Failure{Status::unavailable, "the case has no source that can be run again", {}};
  try {
    if (const std::string why = reason_against(catalog, failed); !why.empty())
      return Failure{Status::unavailable, why, {}};
    return Search(catalog, failed, seconds).run();
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

}  // namespace greta::tuner
