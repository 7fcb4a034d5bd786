#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tuner/evaluate/evaluator.hpp"

namespace greta::tuner {

/// What became of a candidate that a pool evaluated.
struct Evaluated {
  Trial trial;
  std::vector<Trial> lost;  ///< Evaluator::take_lost() after it
  /// Why the member that evaluated it evaluates no more; empty where it does.
  std::string retired;
};

/// Evaluates candidates on any number of cards of one device model at once.
///
/// Each member has a queue of its own, whose candidates it compiles ahead, and evaluates one of
/// them at a time. Of several members, one whose evaluator throws retires: its candidate ends as a
/// failed trial, and another member takes over what it has queued. The calls of a pool are made by
/// one thread.
class EvaluatorPool {
 public:
  /// `members`: at least one; they must outlive the pool.
  explicit EvaluatorPool(std::vector<Evaluator*> members);
  /// Waits for what is under way.
  ~EvaluatorPool();
  EvaluatorPool(const EvaluatorPool&) = delete;
  EvaluatorPool& operator=(const EvaluatorPool&) = delete;

  /// The member for what is not a candidate of a search: ceilings, certification, comparisons.
  /// It may be called while nothing is under way.
  Evaluator& lead() const;
  const DeviceInfo& device() const { return lead().device(); }
  const Catalog& catalog() const { return lead().catalog(); }
  /// Members that have not retired.
  std::size_t size() const;

  /// The number of candidates that it takes before next() has to be called. Where all members have
  /// retired, throws what the last one's evaluator threw.
  int free() const;
  /// Candidates that were given and that next() has not returned yet.
  std::size_t in_flight() const;
  /// Queues a candidate and returns at once. Throws as free() does.
  void evaluate(const Problem& problem, const Config& config, const TrialLimits& limits);
  /// Replaces the limits of what has not begun. Each candidate keeps `reject_spills`.
  void set_limits(const TrialLimits& limits);
  /// Waits for a candidate to end; there must be one in flight. A pool of one member evaluates it
  /// in this call, in the order given, and throws what its evaluator throws.
  Evaluated next();
  /// Forgets what has not begun. What is under way is still returned by next().
  void cancel();

 private:
  struct Request {
    Problem problem;
    Config config;
    TrialLimits limits;
  };
  struct Member {
    Evaluator* evaluator = nullptr;
    int lookahead = 1;
    std::deque<Request> queue{};
    std::size_t prepared = 0;  ///< of the queue's front, told to the evaluator
    bool busy = false;
    bool retired = false;
    std::thread thread{};

    int room() const;  ///< of its queue; negative where it took over another's
  };

  void serve(Member& member);
  /// Tells the evaluator of new candidates in the queue and takes the front one. Unlocks.
  void begin(Member& member, Request& request, std::unique_lock<std::mutex>& lock);
  void retire(Member& member, const Request& request, Evaluated& evaluated);
  /// The member whose queue has the most room, or nullptr where all have retired.
  Member* least_loaded();
  std::size_t in_flight_locked() const;

  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::vector<std::unique_ptr<Member>> members_;
  std::deque<Evaluated> ended_;
  std::exception_ptr error_;  ///< of the last member that retired
  bool closing_ = false;
};

}  // namespace greta::tuner
