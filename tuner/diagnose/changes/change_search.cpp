#include "tuner/diagnose/changes/change_search.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "tuner/diagnose/changes/change_trials.hpp"
#include "tuner/diagnose/changes/group_search.hpp"
#include "tuner/diagnose/changes/kernel_text.hpp"
#include "tuner/diagnose/changes/shared_file.hpp"
#include "tuner/diagnose/changes/trying_process.hpp"

namespace greta::tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int look_ms = 100;
constexpr char ready_mark = '+';  // the kernels are compiled, and the device is open

/// Returns why a case can't be run again with changes; empty: it can. Its kernels are then in the
/// file (BuiltCase). A process of its own opens
/// the device, since a driver's threads don't live on in the processes that are forked later.
std::string reason_against(const Catalog& catalog, const FailedCase& failed,
                           const SharedFile& file) {
  TryingProcess process(0, 1);
  const bool started = process.start([&](std::size_t, std::size_t, int descriptor) {
    std::string why;
    try {
      ChangeTrials trials(catalog, failed);
      BuiltCase{trials.device(), trials.architecture(), trials.code_objects()}.write(file);
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

Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class Search {
 public:
  Search(const Catalog& catalog, const FailedCase& failed, BuiltCase built, Clock::time_point begin,
         double seconds)
      : catalog_(catalog),
        failed_(failed),
        built_(std::move(built)),
        end_(begin + duration(seconds)),
        group_end_(begin + duration(seconds * 0.8)) {
    for (std::size_t i = 0; i < failed.sources.size(); ++i) {
      const KernelSource source =
          read_kept_source(failed.sources[i], failed.kernel.language).value();
      texts_.push_back(source.text);
      slots_.push_back(slots_of(source.text, source.entry));
      for (SourceChange& change : changes_of(texts_.back(), source.entry))
        changes_.push_back({i, std::move(change)});
    }
    leave_out_unexecuted(begin + duration(seconds * 0.3));
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const auto& a, const auto& b) { return a.change.rank < b.change.rank; });
    outcomes_.resize(changes_.size(), ChangeOutcome::untried);
  }

  ChangeSearch run() {
    result_.changes = changes_.size();
    try_in_groups();
    if (!found()) {
      try_one_by_one(order_of([&](std::size_t i) {
        const SourceChange& change = changes_[i].change;
        return outcomes_[i] == ChangeOutcome::untried && change.rank < last_in_groups &&
               !change.is_statement();
      }));
    }
    result_.all = std::none_of(outcomes_.begin(), outcomes_.end(), [](ChangeOutcome outcome) {
      return outcome == ChangeOutcome::untried;
    });
    if (found()) {
      result_.found = described(changes_[best_]);
      result_.found->with_others = outcomes_[best_] == ChangeOutcome::correct;
      result_.found->others = confirmed_ - 1;
    }
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

  /// Returns how many changes a build of a kernel may have. glslang reports one error at a time.
  std::size_t most_of_group() const {
    constexpr std::size_t few = 60, many = 150;
    return failed_.kernel.language == Language::glsl ? few : many;
  }

  void leave_out_unexecuted(Clock::time_point end) {
    const auto executed = executed_slots(failed_, built_, slots_, end);
    std::erase_if(changes_, [&](const KernelChange& one) {
      const auto& slots = slots_[one.kernel];
      const ChangeSlot* const slot = slot_of(one.change, slots);
      return slot != nullptr &&
             executed[one.kernel][static_cast<std::size_t>(slot - slots.data())] == 0;
    });
  }

  /// Adds the groups of a kernel's changes of a rank: those of barriers, or the others, whose
  /// kernels in GLSL need be compiled only once (build_changes()).
  void add_groups(std::size_t kernel, int rank, bool barriers, std::vector<ChangeGroup>& groups) {
    std::vector<SourceChange> changes;
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < std::min(changes_.size(), most_numbers); ++i) {
      const SourceChange& change = changes_[i].change;
      if (changes_[i].kernel != kernel || change.rank != rank) continue;
      if ((change.by.find("arrier") != std::string::npos) != barriers) continue;
      changes.push_back(change);
      numbers.push_back(static_cast<std::uint32_t>(i + 1));
    }
    if (changes.empty()) return;
    kept_changes_.push_back(std::make_unique<std::vector<SourceChange>>(std::move(changes)));
    for (auto& group :
         change_groups(*kept_changes_.back(), numbers, slots_[kernel], most_of_group()))
      groups.push_back({kernel, std::move(group)});
  }

  /// Tries many changes with one compilation, the most likely first, and confirms those with which
  /// results are correct.
  void try_in_groups() {
    for (int rank = 0; rank <= last_in_groups && !found() && Clock::now() < group_end_; ++rank) {
      std::vector<ChangeGroup> groups;
      for (std::size_t kernel = 0; kernel < texts_.size(); ++kernel) {
        for (const bool barriers : {false, true}) add_groups(kernel, rank, barriers, groups);
      }
      // Each kernel's most likely changes come first.
      std::vector<std::size_t> places(texts_.size());
      std::vector<std::pair<std::size_t, ChangeGroup>> placed;
      for (ChangeGroup& group : groups) {
        const std::size_t place = places[group.kernel]++;
        placed.emplace_back(place, std::move(group));
      }
      std::stable_sort(placed.begin(), placed.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      groups.clear();
      for (auto& [place, group] : placed) groups.push_back(std::move(group));
      const auto outcomes = try_groups(failed_, built_, groups, changes_.size() + 1, group_end_);
      for (std::size_t i = 0; i < changes_.size(); ++i) {
        const ChangeOutcome outcome = outcomes[i + 1];
        if (outcome == ChangeOutcome::untried) continue;
        outcomes_[i] = outcome;
        if (outcome == ChangeOutcome::unclear) continue;
        ++result_.tried;
        ++result_.compiled;
      }
      auto order = order_of([&](std::size_t i) {
        return changes_[i].change.rank == rank && outcomes_[i] == ChangeOutcome::correct_here;
      });
      constexpr std::size_t most_confirmed = 8;
      if (order.size() > most_confirmed) order.resize(most_confirmed);
      if (!order.empty()) try_one_by_one(std::move(order));
      if (!found()) {
        try_one_by_one(order_of([&](std::size_t i) {
          return changes_[i].change.rank == rank && outcomes_[i] == ChangeOutcome::unclear;
        }));
      }
    }
  }

  /// Tries changes in the given order, all that were correct in a group, else until one is correct.
  void try_one_by_one(std::vector<std::size_t> order) {
    order_ = std::move(order);
    all_ = !order_.empty() && outcomes_[order_.front()] == ChangeOutcome::correct_here;
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
    choose();
  }

  /// Chooses the best of the changes that were tried one by one: with other operands, those against
  /// a race that was reported, and the first.
  void choose() {
    const bool race = !failed_.sanitizers.race.empty();
    const auto worth = [&](std::size_t i) {
      const bool against_race = changes_[i].change.kind == "missing barrier";
      return std::pair(outcomes_[i] == ChangeOutcome::correct, race && against_race);
    };
    std::vector<std::size_t> correct;
    for (const std::size_t i : confirmed_places_) correct.push_back(order_[i]);
    std::sort(correct.begin(), correct.end());
    for (const std::size_t i : correct) {
      if (!found() || worth(i) > worth(best_)) best_ = i;
    }
    confirmed_ = correct.size();
    confirmed_places_.clear();
  }

  /// The changes before which a process goes on: after a correct one, only earlier ones matter.
  std::size_t limit() const { return all_ ? order_.size() : best_place_; }

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
    if (known == ChangeOutcome::untried || known == ChangeOutcome::unclear) {
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
      if (report->outcome >= ChangeOutcome::correct_here) {
        confirmed_places_.push_back(report->change);
        best_place_ = std::min<std::size_t>(best_place_, report->change);
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
  BuiltCase built_;
  Clock::time_point end_, group_end_;
  std::vector<std::string> texts_;
  std::vector<std::vector<ChangeSlot>> slots_;                            ///< of each text
  std::vector<std::unique_ptr<std::vector<SourceChange>>> kept_changes_;  ///< those of groups
  std::vector<KernelChange> changes_;
  std::vector<ChangeOutcome> outcomes_;
  ChangeSearch result_;
  std::vector<std::size_t> order_;                   ///< of changes that are tried one by one
  std::size_t best_place_ = 0;                       ///< in the order
  bool all_ = false;                                 ///< whether all of the order are tried
  std::vector<std::size_t> confirmed_places_;        ///< in the order
  std::size_t confirmed_ = 0;                        ///< number of changes that are correct
  std::size_t best_ = static_cast<std::size_t>(-1);  ///< the change that is named
};

}  // namespace

Result<ChangeSearch> search_change(const Catalog& catalog, const FailedCase& failed,
                                   double seconds) {
  if (failed.sources.empty() || failed.kernel.launches.empty())
    return Failure{Status::unavailable, "the case has no source that can be run again", {}};
  try {
    const auto begin = Clock::now();
    SharedFile file;
    if (const std::string why = reason_against(catalog, failed, file); !why.empty())
      return Failure{Status::unavailable, why, {}};
    BuiltCase built;
    built.read(file, failed.sources.size());
    return Search(catalog, failed, std::move(built), begin, seconds).run();
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

}  // namespace greta::tuner
