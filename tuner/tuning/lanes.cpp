#include "tuner/tuning/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tuner/measure/stopwatch.hpp"
#include "tuner/tuning/expected_cost.hpp"

namespace greta::tuner {
namespace {

// Number of cards that may fail in one task: a kernel that makes cards fail must not cost all.
constexpr int most_lost_cards = 2;
constexpr std::chrono::milliseconds look{50};  // interval between two looks whether to stop
// With a deadline: what a task is assumed to take beyond its budget before one was measured, the
// least budget of a task, and the time before the deadline when none is begun.
constexpr double first_beyond_s = 3, least_budget_s = 1, too_late_s = 2;

/// Adds notes to a result: to its first session, because reports show those of sessions.
void add_notes(TaskResult& result, const std::vector<std::string>& notes) {
  if (result.sessions.empty()) return;
  auto& all = result.sessions.front().notes;
  all.insert(all.begin(), notes.begin(), notes.end());
}

}  // namespace

/// The tasks of one call of run(), and the threads of the lanes that take them.
class Lanes::Run {
 public:
  Run(std::vector<std::unique_ptr<Lane>>& lanes, const RunContext& context,
      const std::vector<TuningTask>& tasks)
      : lanes_(lanes), context_(context) {
    add_jobs(tasks);
  }

  /// Tunes all tasks: on this thread if there is one lane, otherwise on a thread for each.
  Result<void> run(const Done& done) {
    if (lanes_.size() == 1) {
      done_ = &done;
      serve(*lanes_.front());
    } else {
      run_threads(done);
    }
    std::erase_if(lanes_, [](const auto& lane) { return lane->cards().empty(); });
    return error_ ? Result<void>(*error_) : Result<void>();
  }

 private:
  struct Job {
    const TuningTask* task = nullptr;
    int lost_cards = 0;
    std::vector<std::string> notes{};
    std::optional<double> seconds{};  ///< its budget, with a deadline
  };
  struct Finished {
    const TuningTask* task;
    TaskResult result;
  };

  void add_jobs(const std::vector<TuningTask>& tasks) {
    for (const TuningTask& task : tasks) jobs_.push_back({.task = &task});
    const auto cost = [&](const Job& job) {
      const Problem& problem = job.task->problem;
      return job.task->share * expected_cost_s(context_.options.catalog.at(problem.op), problem,
                                               context_.options.budget);
    };
    if (lanes_.size() == 1) return;
    std::stable_sort(jobs_.begin(), jobs_.end(),
                     [&](const Job& a, const Job& b) { return cost(a) > cost(b); });
  }

  void run_threads(const Done& done) {
    std::vector<std::thread> threads;
    serving_ = lanes_.size();
    for (auto& lane : lanes_) {
      threads.emplace_back([this, &lane = *lane] {
        serve(lane);
        const std::lock_guard lock(mutex_);
        --serving_;
        changed_.notify_all();
      });
    }
    const auto join = [&] {
      for (auto& thread : threads) thread.join();
    };
    try {
      for (auto next = await(); next; next = await()) done(*next->task, next->result);
    } catch (...) {
      end();
      join();
      throw;
    }
    join();
  }

  /// Waits for a finished task. Returns nothing when all lanes have ended.
  std::optional<Finished> await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !finished_.empty() || serving_ == 0; });
    if (finished_.empty()) return std::nullopt;
    Finished first = std::move(finished_.front());
    finished_.pop_front();
    return first;
  }

  void serve(Lane& lane) {
    while (auto job = take()) {
      TaskResult result;
      try {
        const Stopwatch watch;
        result = lane.tune(*job->task, job->seconds);
        if (job->seconds) count_beyond(watch.seconds() - *job->seconds);
      } catch (const Error& error) {
        if (!keep_on(lane, *std::move(job), error)) return;
        continue;
      } catch (const std::exception& error) {
        fail({Status::crash, error.what(), {}});
        return;
      }
      add_notes(result, job->notes);
      finish(*job->task, std::move(result));
    }
  }

  /// Takes the next task. While others work, one of them may have to be begun again.
  std::optional<Job> take() {
    std::unique_lock lock(mutex_);
    while (!ending_ && !context_.stop) {
      if (!jobs_.empty() && too_late()) jobs_.clear();
      if (!jobs_.empty()) {
        jobs_.front().seconds = seconds_of_next();
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        ++working_;
        return job;
      }
      if (working_ == 0) break;
      changed_.wait_for(lock, look);
    }
    changed_.notify_all();
    return std::nullopt;
  }

  double seconds_left() const {
    const auto left = *context_.options.deadline - std::chrono::steady_clock::now();
    return std::chrono::duration<double>(left).count();
  }

  /// Returns whether no further task is begun. The first one always is.
  bool too_late() const {
    return context_.options.deadline && begun_ > 0 && seconds_left() < too_late_s;
  }

  /// Returns the budget of the next task: its share of the time that all lanes have left.
  std::optional<double> seconds_of_next() {
    ++begun_;
    if (!context_.options.deadline) return std::nullopt;
    double shares = 0;
    for (const Job& job : jobs_) shares += job.task->share;
    const double part = shares > 0 ? jobs_.front().task->share / shares : 1;
    const double left = seconds_left();
    const double own = std::min(left, left * static_cast<double>(lanes_.size()) * part);
    const double beyond = ended_ > 0 ? beyond_s_ / ended_ : first_beyond_s;
    return std::max(least_budget_s, own - beyond);
  }

  /// Counts the seconds that a task took beyond its budget.
  void count_beyond(double seconds) {
    const std::lock_guard lock(mutex_);
    beyond_s_ += std::max(0.0, seconds);
    ++ended_;
  }

  void finish(const TuningTask& task, TaskResult result) {
    const bool stored = result.not_stored().empty();
    {
      const std::lock_guard lock(mutex_);
      --working_;
      ending_ = ending_ || !stored;
      if (done_ == nullptr) finished_.push_back({&task, std::move(result)});
      changed_.notify_all();
    }
    if (done_ != nullptr) (*done_)(task, result);
  }

  /// Decides after an error of a task. Returns whether the lane goes on.
  bool keep_on(Lane& lane, Job job, const Error& error) {
    const std::string where = lane.device().id();
    const bool of_the_card = is_of_the_card(error.status());
    const bool goes_on = of_the_card && lane.lose_card();
    if (!of_the_card || (!goes_on && !another_lane(lane))) {
      fail({error.status(), error.what(), {}});
      return false;
    }
    context_.observer.on_card_lost(fmt::format("{}: {}", where, error.what()));
    job.notes.push_back(fmt::format("{}: {}; another card tuned the problem", where, error.what()));
    if (++job.lost_cards < most_lost_cards) {
      const std::lock_guard lock(mutex_);
      --working_;
      jobs_.push_front(std::move(job));
      changed_.notify_all();
    } else {
      TaskResult result;
      result.given_up = fmt::format("given up after {} cards failed: {}: {}", job.lost_cards, where,
                                    error.what());
      finish(*job.task, std::move(result));
    }
    return goes_on;
  }

  /// Returns whether a lane beside this one, which has lost its last card, can take its tasks.
  bool another_lane(const Lane& lost) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(&lost);
    return lost_.size() < lanes_.size();
  }

  void fail(Failure failure) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(failure);
    ending_ = true;
    changed_.notify_all();
  }

  void end() {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }

  std::vector<std::unique_ptr<Lane>>& lanes_;
  const RunContext& context_;
  const Done* done_ = nullptr;  // called at once; nullptr: results go to finished_

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::deque<Finished> finished_;
  std::size_t working_ = 0;  // tasks in work
  std::size_t serving_ = 0;  // threads
  std::vector<const Lane*> lost_;
  bool ending_ = false;  // no further task is begun
  int begun_ = 0, ended_ = 0;
  double beyond_s_ = 0;  // taken by those that ended, beyond their budgets
  std::optional<Failure> error_;
};

Lanes::Lanes(const std::vector<Evaluator*>& evaluators, std::size_t most, const RunContext& context)
    : context_(context),
      observer_(std::make_unique<SerialObserver>(std::vector{&context.observer})) {
  const RunContext serial{context.options, context.seed, context.date, context.db,
                          *observer_,      context.stop, context.run};
  for (auto& cards : make_lanes(evaluators, most)) {
    lanes_.push_back(std::make_unique<Lane>(std::move(cards), serial));
  }
}

Lanes::~Lanes() = default;

Result<void> Lanes::run(const std::vector<TuningTask>& tasks, const Done& done) {
  if (lanes_.empty()) return Failure{Status::unavailable, "all cards have failed", {}};
  RunStart start{{}, tasks.size(), lanes_.front()->models()};
  for (const auto& lane : lanes_) {
    const auto cards = lane->cards();
    start.cards.insert(start.cards.end(), cards.begin(), cards.end());
  }
  observer_->on_run(start);
  const RunContext serial{context_.options, context_.seed, context_.date, context_.db,
                          *observer_,       context_.stop, context_.run};
  return Run(lanes_, serial, tasks).run(done);
}

}  // namespace greta::tuner
