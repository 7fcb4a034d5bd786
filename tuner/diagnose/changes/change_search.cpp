#include "tuner/diagnose/changes/change_search.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "tuner/diagnose/changes/case_changes.hpp"
#include "tuner/diagnose/changes/change_effects.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"
#include "tuner/diagnose/changes/executed_slots.hpp"
#include "tuner/diagnose/changes/group_search.hpp"
#include "tuner/diagnose/changes/shared_file.hpp"
#include "tuner/diagnose/changes/trying_process.hpp"

namespace greta::tuner {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds most_preparation{60};
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
      BuiltCase built;
      built.device = trials.device();
      built.architecture = trials.architecture();
      built.unchanged = trials.code_objects();
      built.write(file);
      static_cast<void>(!write(descriptor, &ready_mark, 1));  // what ends the process now fails
      const auto begin = Clock::now();
      const ChangeOutcome outcome = trials.outcome_unchanged();
      if (outcome == ChangeOutcome::correct_here) why = unchanged_is_correct();
      if (outcome == ChangeOutcome::hangs) why = too_slow(ChangeTrials::most_time_of_run);
      built.run_time = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
      built.reduction = trials.reduction();
      built.write_runs(file);
    } catch (const std::exception& error) {
      why = error.what();
    }
    why += '\n';
    static_cast<void>(!write(descriptor, why.data(), why.size()));
  });
  if (!started) return "no process to try changes of the source in";
  std::string why;
  pollfd wait{process.descriptor(), POLLIN, 0};
  while (!process.silent(most_preparation)) {
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
        group_end_(begin + duration(seconds * 0.8)),
        space_(failed, built_, begin + duration(seconds * 0.3)),
        changes_(space_.all()) {
    outcomes_.resize(changes_.size(), ChangeOutcome::untried);
  }

  ChangeSearch run() {
    result_.changes = changes_.size();
    remaining_ =
        order_of(0, changes_.size(), [&](std::size_t i) { return changes_[i].has_slot(); });
    while (!remaining_.empty() && !convinces() && Clock::now() < group_end_)
      try_batch(next_batch());
    if (!convinces()) {
      try_one_by_one(order_of(0, changes_.size(), [&](std::size_t i) {
        return outcomes_[i] == ChangeOutcome::untried && !changes_[i].change.is_statement();
      }));
    }
    result_.all = std::none_of(outcomes_.begin(), outcomes_.end(), [](ChangeOutcome outcome) {
      return outcome == ChangeOutcome::untried;
    });
    if (found()) {
      result_.found = described(changes_[best_]);
      result_.found->with_others = outcomes_[best_] == ChangeOutcome::correct;
      const auto as_good = std::count_if(confirmed_.begin(), confirmed_.end(), [&](std::size_t i) {
        return outcomes_[i] == outcomes_[best_];
      });
      result_.found->others = static_cast<std::size_t>(as_good) - 1;
    }
    return std::move(result_);
  }

 private:
  /// Number of changes in groups among which the best is chosen.
  static constexpr std::size_t batch = 240;
  static constexpr std::chrono::seconds most_silence{100};  // of a change that is confirmed

  PlaceEvidence::Place place_of(std::size_t i) const {
    return {changes_[i].kernel, changes_[i].slot};
  }

  /// Takes the most likely of the remaining changes, by what is known of their places.
  std::vector<std::size_t> next_batch() {
    std::vector<double> worth(changes_.size(), 0);
    for (const std::size_t i : remaining_)
      worth[i] = changes_[i].change.worth + evidence_.worth_of(place_of(i));
    std::stable_sort(remaining_.begin(), remaining_.end(),
                     [&](std::size_t a, std::size_t b) { return worth[a] > worth[b]; });
    const auto end =
        remaining_.begin() + static_cast<std::ptrdiff_t>(std::min(batch, remaining_.size()));
    std::vector<std::size_t> next(remaining_.begin(), end);
    remaining_.erase(remaining_.begin(), end);
    return next;
  }

  bool found() const { return best_ < changes_.size(); }
  /// Whether the best change leaves no part out that is executed without it, as a condition that
  /// gives each part of the kernel all the work.
  bool convinces() const { return found() && lost_.at(best_) == 0; }

  template <typename Accept>
  std::vector<std::size_t> order_of(std::size_t from, std::size_t to, const Accept& accept) const {
    std::vector<std::size_t> order;
    for (std::size_t i = from; i < to; ++i) {
      if (accept(i)) order.push_back(i);
    }
    return order;
  }

  /// Tries changes, many with one compilation, and confirms those with which results are correct.
  /// Of those that are unclear, a few are tried alone.
  void try_batch(const std::vector<std::size_t>& places) {
    const auto tried =
        try_groups(failed_, built_, space_.groups_of(places), changes_.size() + 1, group_end_);
    for (const std::size_t i : places) {
      const auto& [outcome, effect] = tried[i + 1];
      evidence_.add(place_of(i), effect);
      if (outcome == ChangeOutcome::untried) continue;
      outcomes_[i] = outcome;
      if (outcome == ChangeOutcome::unclear) continue;
      ++result_.tried;
      ++result_.compiled;
    }
    constexpr std::size_t most_confirmed = 8, most_unclear = 4;
    const auto with = [&](ChangeOutcome outcome) {
      std::vector<std::size_t> order;
      std::copy_if(places.begin(), places.end(), std::back_inserter(order),
                   [&](std::size_t i) { return outcomes_[i] == outcome; });
      return order;
    };
    auto order = with(ChangeOutcome::correct_here);
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
      return changes_[i].change.kind == "missing barrier";
    });
    if (order.size() > most_confirmed) order.resize(most_confirmed);
    if (!order.empty()) try_one_by_one(std::move(order));
    if (convinces()) return;
    auto unclear = with(ChangeOutcome::unclear);
    if (unclear.size() > most_unclear) unclear.resize(most_unclear);
    if (!unclear.empty()) try_one_by_one(std::move(unclear));
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

  /// Chooses the best of the changes that were tried one by one: with other operands, without loss
  /// of parts, no statement that is added, since it may do again what another part ought to do, and
  /// the most likely. A barrier that mends counts as if a race showed, since it changes no results
  /// without one.
  void choose() {
    const auto worth = [&](std::size_t i) {
      const auto& [start, length, by, kind, rank, worth_before] = changes_[i].change;
      const bool unseen = kind == "missing barrier" && !shows_race(failed_);
      return std::tuple(outcomes_[i] == ChangeOutcome::correct, lost_[i] == 0,
                        kind != "missing statement",
                        worth_before + (unseen ? CaseChanges::worth_of_race : 0));
    };
    for (const std::size_t i : confirmed_places_) {
      const std::size_t change = order_[i];
      confirmed_.push_back(change);
      lost_[change] = parts_lost_with(changes_[change]);
    }
    std::sort(confirmed_.begin(), confirmed_.end());
    for (const std::size_t i : confirmed_) {
      if (!found() || worth(i) > worth(best_)) best_ = i;
    }
    confirmed_places_.clear();
  }

  /// Returns how many parts of the source a run executes without a change, and not with it.
  std::size_t parts_lost_with(const KernelChange& one) {
    const std::string& text = space_.text(one.kernel);
    const auto [own, is_new] = unexecuted_.try_emplace(one.kernel, 0);
    if (is_new) own->second = unexecuted_slots(failed_, built_, one.kernel, text, end_);
    const std::size_t count =
        unexecuted_slots(failed_, built_, one.kernel, one.change.applied_to(text), end_);
    return count > own->second ? count - own->second : 0;
  }

  /// The changes before which a process goes on: after a correct one, only earlier ones matter.
  std::size_t limit() const { return all_ ? order_.size() : best_place_; }

  void start(TryingProcess& process) {
    const bool started = process.start([this](std::size_t next, std::size_t step, int descriptor) {
      try_from(next, step, descriptor);
    });
    if (!started) throw Error("no process to try changes of the source in");
  }

  /// The time after which a changed kernel hangs.
  Deadline most_time_of_run() const {
    constexpr std::chrono::milliseconds least{3000};
    constexpr int more_than_unchanged = 10;
    return std::clamp<Deadline>(more_than_unchanged * built_.run_time, least,
                                ChangeTrials::most_time_of_run);
  }

  /// What a process does.
  void try_from(std::size_t next, std::size_t step, int descriptor) {
    try {
      ChangeTrials trials(catalog_, failed_, most_time_of_run(), built_.unchanged);
      const Report ready;
      if (write(descriptor, &ready, sizeof ready) != sizeof ready) return;
      for (std::size_t i = next; i < order_.size(); i += step) {
        const Report report{
            static_cast<std::uint32_t>(i), trials.outcome_of(changes_[order_[i]]), {}};
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
    } else if (process.silent(most_silence)) {
      const std::size_t place = process.next();
      if (process.stop_and_skip()) count(place, ChangeOutcome::hangs);
    }
  }

  FoundChange described(const KernelChange& one) const {
    const std::string& text = space_.text(one.kernel);
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
  CaseChanges space_;
  const std::vector<KernelChange>& changes_;
  std::vector<ChangeOutcome> outcomes_;
  ChangeSearch result_;
  std::vector<std::size_t> order_;                 ///< of changes that are tried one by one
  std::size_t best_place_ = 0;                     ///< in the order
  bool all_ = false;                               ///< whether all of the order are tried
  std::vector<std::size_t> confirmed_places_;      ///< in the order
  std::vector<std::size_t> confirmed_;             ///< changes that are correct
  std::map<std::size_t, std::size_t> lost_;        ///< parts_lost_with() of these
  std::map<std::size_t, std::size_t> unexecuted_;  ///< unexecuted_slots() of kernels
  std::vector<std::size_t> remaining_;             ///< changes with a slot to be tried
  PlaceEvidence evidence_;
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
