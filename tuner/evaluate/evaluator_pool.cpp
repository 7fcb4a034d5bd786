#include "tuner/evaluate/evaluator_pool.hpp"

#include <algorithm>
#include <utility>

#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {

bool is_of_the_card(Status status) {
  switch (status) {
    case Status::launch:
    case Status::timeout:
    case Status::crash:
    case Status::out_of_memory:  // another process may have taken this card's
    case Status::unavailable:
    case Status::device_lost:
      return true;
    default:
      return false;
  }
}

EvaluatorPool::EvaluatorPool(std::vector<Evaluator*> members) {
  for (Evaluator* evaluator : members) {
    members_.push_back(std::make_unique<Member>(
        Member{.evaluator = evaluator, .lookahead = std::max(1, evaluator->lookahead())}));
  }
  if (single() && members_.front()->lookahead == 1) return;
  for (auto& member : members_) {
    member->thread = std::thread([this, &member = *member] { serve(member); });
  }
}

EvaluatorPool::~EvaluatorPool() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_.notify_all();
  for (auto& member : members_) {
    if (member->thread.joinable()) member->thread.join();
  }
}

Evaluator& EvaluatorPool::lead() const {
  const std::lock_guard lock(mutex_);
  for (const auto& member : members_) {
    if (!member->retired) return *member->evaluator;
  }
  return *members_.front()->evaluator;
}

std::vector<Evaluator*> EvaluatorPool::members() const {
  const std::lock_guard lock(mutex_);
  std::vector<Evaluator*> present;
  for (const auto& member : members_) {
    if (!member->retired) present.push_back(member->evaluator);
  }
  return present;
}

void EvaluatorPool::retire_lead() {
  const std::lock_guard lock(mutex_);
  for (const auto& member : members_) {
    if (std::exchange(member->retired, true)) continue;
    error_ = std::make_exception_ptr(
        Error(Failure{Status::unavailable, member->evaluator->device().id() + " has failed", {}}));
    return;
  }
}

std::vector<std::string> EvaluatorPool::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

int EvaluatorPool::free() const {
  const std::lock_guard lock(mutex_);
  int total = 0;
  bool any = !ended_.empty();
  for (const auto& member : members_) {
    any = any || !member->retired;
    total += std::max(0, member->room());
  }
  if (!any) std::rethrow_exception(error_);
  if (single()) total -= static_cast<int>(ended_.size());
  return total;
}

std::size_t EvaluatorPool::in_flight() const {
  const std::lock_guard lock(mutex_);
  return in_flight_locked();
}

std::size_t EvaluatorPool::in_flight_locked() const {
  std::size_t count = ended_.size();
  for (const auto& member : members_) count += member->queue.size() + (member->busy ? 1 : 0);
  return count;
}

int EvaluatorPool::Member::room() const {
  return retired ? 0 : lookahead - static_cast<int>(queue.size()) - (busy ? 1 : 0);
}

EvaluatorPool::Member* EvaluatorPool::least_loaded() {
  Member* best = nullptr;
  for (const auto& member : members_) {
    if (member->retired) continue;
    if (best == nullptr || member->room() > best->room()) best = member.get();
  }
  return best;
}

void EvaluatorPool::evaluate(const Problem& problem, const Config& config,
                             const TrialLimits& limits) {
  {
    const std::lock_guard lock(mutex_);
    Member* member = least_loaded();
    if (member == nullptr) std::rethrow_exception(error_);
    member->queue.push_back({problem, config, limits});
  }
  work_.notify_all();
}

void EvaluatorPool::set_limits(const TrialLimits& limits) {
  const std::lock_guard lock(mutex_);
  for (auto& member : members_) {
    for (Request& request : member->queue) {
      const bool reject_spills = request.limits.reject_spills;
      request.limits = limits;
      request.limits.reject_spills = reject_spills;
    }
  }
}

void EvaluatorPool::cancel() {
  const std::lock_guard lock(mutex_);
  for (auto& member : members_) {
    member->queue.clear();
    member->prepared = 0;
  }
  credits_ = 0;
}

/// Marks a member as busy. At the end the lock is held again, also after an exception.
class EvaluatorPool::Busy {
 public:
  Busy(Member& member, std::unique_lock<std::mutex>& lock) : member_(member), lock_(lock) {
    member_.busy = true;
  }
  ~Busy() {
    if (!lock_.owns_lock()) lock_.lock();
    member_.busy = false;
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  Member& member_;
  std::unique_lock<std::mutex>& lock_;
};

void EvaluatorPool::run_front(Member& member, Request& request, Evaluated& evaluated,
                              std::unique_lock<std::mutex>& lock) {
  const Busy busy(member, lock);
  std::vector<Config> waiting, upcoming;
  for (const Request& queued : member.queue) {
    waiting.push_back(queued.config);
    if (waiting.size() > member.prepared) upcoming.push_back(queued.config);
  }
  request = std::move(member.queue.front());
  member.queue.pop_front();
  member.prepared = member.queue.size();
  lock.unlock();
  Evaluator& evaluator = *member.evaluator;
  std::size_t ready = 0;
  {
    const Lap lap(evaluated.waited_s);
    evaluator.prepare(request.problem, upcoming);
    ready = evaluator.first_ready(request.problem, waiting);
  }
  lock.lock();
  exchange(member, request, waiting[ready]);
  lock.unlock();
  evaluated.trial = evaluator.evaluate(request.problem, request.config, request.limits);
  evaluated.lost = evaluator.take_lost();
}

// Compiling takes from a tenth of a second to several seconds. Candidates that are compiled do not
// wait for others that were asked for earlier.
void EvaluatorPool::exchange(Member& member, Request& request, const Config& ready) {
  const auto found = std::find_if(member.queue.begin(), member.queue.end(),
                                  [&](const Request& queued) { return queued.config == ready; });
  if (request.config == ready || found == member.queue.end()) return;
  Request chosen = std::move(*found);
  member.queue.erase(found);
  member.queue.push_front(std::exchange(request, std::move(chosen)));
}

Evaluated EvaluatorPool::next() {
  std::unique_lock lock(mutex_);
  Member& first = *members_.front();
  if (!first.thread.joinable()) {
    Request request;
    Evaluated evaluated;
    run_front(first, request, evaluated, lock);
    return evaluated;
  }
  if (single()) {
    credits_ = first.busy || !ended_.empty() ? 1 : 2;
    work_.notify_all();
  }
  // A candidate that may start starts now, before the caller changes its limits.
  done_.wait(lock,
             [&] { return !ended_.empty() && (!single() || first.busy || !may_start(first)); });
  Ended ended = std::move(ended_.front());
  ended_.pop_front();
  if (single() && ended.error) first.queue.clear();
  if (in_flight_locked() == 0) credits_ = 0;
  if (ended.error) std::rethrow_exception(ended.error);
  return std::move(ended.evaluated);
}

bool EvaluatorPool::may_start(const Member& member) const {
  if (member.queue.empty()) return false;
  return !single() || (credits_ > 0 && (ended_.empty() || !ended_.back().error));
}

void EvaluatorPool::serve(Member& member) {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return closing_ || may_start(member); });
    if (closing_) return;
    if (single()) {
      --credits_;
      done_.notify_one();
    }
    Request request;
    Ended ended;
    try {
      run_front(member, request, ended.evaluated, lock);
    } catch (const Error& error) {
      if (single()) {
        ended.error = std::current_exception();
      } else if (error.status() == Status::interrupted) {
        ended.evaluated.trial.config = request.config;
        ended.evaluated.trial.failure = Status::interrupted;
        ended.evaluated.trial.message = error.what();
      } else if (is_of_the_card(error.status())) {
        retire(member, request, {error.status(), error.what(), {}}, ended.evaluated);
      } else {
        ended.error = std::current_exception();
      }
    } catch (...) {
      ended.error = std::current_exception();
    }
    const bool retired = member.retired;
    ended_.push_back(std::move(ended));
    done_.notify_one();
    if (retired) return;
  }
}

// Called with the mutex locked.
void EvaluatorPool::retire(Member& member, const Request& request, const Failure& why,
                           Evaluated& evaluated) {
  member.retired = true;
  error_ = std::current_exception();
  evaluated.lost = member.evaluator->take_lost();
  evaluated.retired = member.evaluator->device().id() + ": " + why.message;
  lost_.push_back(evaluated.retired);
  Trial& trial = evaluated.trial;
  const auto told = std::find_if(
      evaluated.lost.begin(), evaluated.lost.end(),
      [&](const Trial& lost) { return lost.config == request.config && lost.failure; });
  if (told != evaluated.lost.end()) {
    trial = std::move(*told);
    evaluated.lost.erase(told);
  } else {
    trial.config = request.config;
    trial.problem_key = request.problem.key();
    trial.failure = Status::crash;
    trial.message = why.message;
  }
  std::deque<Request> orphans = std::exchange(member.queue, {});
  Member* const heir = least_loaded();
  if (heir != nullptr) {
    for (Request& orphan : orphans) heir->queue.push_back(std::move(orphan));
    work_.notify_all();
  }
}

}  // namespace greta::tuner
