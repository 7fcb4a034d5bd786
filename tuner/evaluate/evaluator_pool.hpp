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

/// The result of a candidate that a pool evaluated.
struct Evaluated {
  Trial trial;
  std::vector<Trial> lost;  ///< Evaluator::take_lost() after the evaluation
  /// Why the member that evaluated it has retired; empty if it has not.
  std::string retired;
  double waited_s = 0;  ///< time until a candidate was compiled
};

/// Returns whether an evaluator throws this status because its card or worker process failed, so
/// that another card may go on. Other errors come from the request, the host or a stop.
bool is_of_the_card(Status status);

/// Evaluates candidates on several cards of one device model in parallel.
///
/// Each member has its own queue. It compiles the queued candidates ahead and evaluates one at a
/// time: the first one that is compiled. If there are several members and the evaluator of one
/// throws because its card or worker failed (is_of_the_card()), that member retires: its candidate
/// ends as a failed trial, and another member takes over its queue. Any other error ends the run:
/// next() throws it. All calls of a pool are made by one thread.
///
/// Members evaluate in threads of their own, so that the caller records one result and asks for
/// candidates while the next one runs. Only a single member without lookahead, which is a CPU,
/// evaluates in next(): the caller's work would take cores from the measurements. A single member
/// is at most one candidate ahead of next(), and what free() returns depends on nothing else, so
/// that candidates and their limits do not depend on the speed of the caller.
class EvaluatorPool {
 public:
  /// Takes at least one member. The members must outlive the pool.
  explicit EvaluatorPool(std::vector<Evaluator*> members);
  /// Waits for the running evaluations.
  ~EvaluatorPool();
  EvaluatorPool(const EvaluatorPool&) = delete;
  EvaluatorPool& operator=(const EvaluatorPool&) = delete;

  /// Returns the member for work other than the candidates of a search: ceilings, certification,
  /// comparisons. It may only be used while nothing is in flight.
  Evaluator& lead() const;
  const DeviceInfo& device() const { return lead().device(); }
  const Catalog& catalog() const { return lead().catalog(); }
  /// Returns the members that have not retired.
  std::vector<Evaluator*> members() const;
  std::size_t size() const { return members().size(); }
  /// Retires the lead, while nothing is in flight: its card failed in other work than a search.
  void retire_lead();
  /// Returns why members have retired in a search: "hip:1: the device does not answer".
  std::vector<std::string> lost() const;

  /// Returns the number of candidates that can be queued before next() has to be called. If all
  /// members have retired, throws the exception of the last member's evaluator.
  int free() const;
  /// Returns the number of queued or running candidates, including results not fetched yet.
  std::size_t in_flight() const;
  /// Queues a candidate and returns immediately. Throws like free().
  void evaluate(const Problem& problem, const Config& config, const TrialLimits& limits);
  /// Replaces the limits of candidates that have not started. Each candidate keeps `reject_spills`.
  void set_limits(const TrialLimits& limits);
  /// Waits for a candidate to finish; one must be in flight. A pool of one member begins with its
  /// first candidate in this call, and throws what its evaluator throws. A pool of several throws
  /// errors that are not of a card; a candidate that a stop ended has failed as `interrupted`.
  Evaluated next();
  /// Discards candidates that have not started. Running ones are still returned by next().
  void cancel();

 private:
  struct Request {
    Problem problem;
    Config config;
    TrialLimits limits;
  };
  class Busy;
  /// A finished candidate, or the error that ends the run.
  struct Ended {
    Evaluated evaluated;
    std::exception_ptr error;
  };
  struct Member {
    Evaluator* evaluator = nullptr;
    int lookahead = 1;
    std::deque<Request> queue{};
    std::size_t prepared = 0;  ///< number of queued candidates, from the front, already announced
    bool busy = false;
    bool retired = false;
    std::thread thread{};

    int room() const;  ///< free places in its queue; negative if it took over another's
  };

  bool single() const { return members_.size() == 1; }
  void serve(Member& member);
  bool may_start(const Member& member) const;
  /// Announces new candidates in the queue to the evaluator, then takes the first one that is ready
  /// and evaluates it with the mutex unlocked. After an exception the member is still busy, and the
  /// mutex may be unlocked.
  void run_front(Member& member, Request& request, Evaluated& evaluated,
                 std::unique_lock<std::mutex>& lock);
  /// Replaces a request by the queued one of this configuration, if there is one; it is then the
  /// front one.
  static void exchange(Member& member, Request& request, const Config& ready);
  /// Retires a member after the exception that is being handled.
  void retire(Member& member, const Request& request, const Failure& why, Evaluated& evaluated);
  /// Returns the member with the most room in its queue, or nullptr if all have retired.
  Member* least_loaded();
  std::size_t in_flight_locked() const;

  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  std::vector<std::unique_ptr<Member>> members_;
  std::deque<Ended> ended_;
  std::vector<std::string> lost_;
  std::exception_ptr error_;  ///< exception of the last member that retired
  int credits_ = 0;           ///< number of candidates that a single member may start
  bool closing_ = false;
};

}  // namespace greta::tuner
