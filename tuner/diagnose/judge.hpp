#pragma once

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tuner/diagnose/evidence.hpp"

namespace greta::tuner {

/// A possible cause of wrong results, and how much of them it explains.
struct Cause {
  std::string kind;   ///< "transposed operand", …: one of docs/diagnose.md
  std::string words;  ///< what the kernel does, in a sentence without its full stop
  /// The share of the wrong elements that have the value that the cause predicts.
  double explained = 0;
  /// Of the elements that the cause would change, the share that is wrong. Less than 1 if only a
  /// part of the kernel does it.
  double precision = 1;
  /// Root mean square of what remains of the errors, divided by that of the errors.
  double residual = 1;
  double score = 0;        ///< by which causes are ranked
  std::string evidence{};  ///< further facts, in a sentence; may be empty
};

/// Compares hypotheses with what was computed, and ranks them.
class Judge {
 public:
  using Clock = std::chrono::steady_clock;

  Judge(const Evidence& evidence, double seconds)
      : evidence_(evidence),
        end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}

  const Evidence& evidence() const { return evidence_; }
  /// Returns how well a prediction agrees with the outputs.
  Cause compare(std::string kind, std::string words, const Prediction& predicted) const;
  /// Keeps a hypothesis if it explains a part of the wrong elements. `weight` is at most 1: less
  /// for hypotheses that can agree by chance, or that a simpler one implies.
  void offer(std::string kind, std::string words, const Prediction& predicted, double weight = 1);
  /// Does the same for a prediction for which `numbers` were fitted to wrong elements. Does nothing
  /// if these are fewer than two for each of them: so few agree with almost any hypothesis.
  void offer_fitted(std::string kind, std::string words, const Prediction& predicted,
                    std::size_t numbers, double weight = 1);
  /// Does the same for what other inputs give. Does nothing after the time has passed.
  void offer_inputs(std::string kind, std::string words, const std::vector<HostTensor>& inputs,
                    double weight = 1);
  void offer_problem(std::string kind, std::string words, const Problem& problem,
                     const std::vector<HostTensor>& inputs, double weight = 1);
  /// Keeps a cause whose score is known.
  void add(Cause cause) { causes_.push_back(std::move(cause)); }
  /// Multiplies the scores of causes of some kinds, also of later ones, against which something
  /// else speaks.
  void doubt(std::set<std::string> kinds, double factor) {
    doubted_ = std::move(kinds);
    doubt_factor_ = factor;
  }

  bool time_left() const { return Clock::now() < end_; }
  /// Returns when a share of the time that is left ends.
  Clock::time_point end_of_share(double share) const {
    const auto now = Clock::now();
    return now + std::chrono::duration_cast<Clock::duration>(share * (end_ - now));
  }
  /// Whether hypotheses were left out because there was no time.
  bool hurried() const { return hurried_; }
  void hurry() { hurried_ = true; }
  std::size_t tried() const { return tried_; }
  /// Returns the causes by score, the best first, each kind with the same words once.
  std::vector<Cause> ranked() const;

 private:
  const Evidence& evidence_;
  Clock::time_point end_;
  std::vector<Cause> causes_;
  std::set<std::string> doubted_;
  double doubt_factor_ = 1;
  std::size_t tried_ = 0;
  bool hurried_ = false;
};

}  // namespace greta::tuner
