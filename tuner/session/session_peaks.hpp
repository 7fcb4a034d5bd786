#pragma once

#include <functional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "tuner/evaluate/evaluator.hpp"

namespace greta::tuner {

/// The peaks of a session's device: what the database has, and what the session measures.
class SessionPeaks {
 public:
  SessionPeaks() = default;
  /// `type` is the type of the problem's inputs, and `work` what it takes.
  SessionPeaks(const TunedDb& db, const DeviceInfo& device, DType type, const Work& work);

  /// Returns all known peaks, or nothing while one is missing that the problem's roofline needs.
  std::vector<Ceiling> of_the_problem() const;
  /// Returns a lower bound of the time of this work in seconds. Unknown peaks are assumed to be
  /// high.
  double roof_s(const Work& work) const;

  /// Measures what is missing: first the peaks that the problem needs, then others until
  /// `allowed_s` seconds have passed. Calls `announce` before each and `store` after it. Throws
  /// Error.
  void measure(Evaluator& evaluator, double allowed_s, const std::function<bool()>& stopped,
               const std::function<void(const std::string&)>& announce,
               const std::function<void(const std::vector<Ceiling>&)>& store);

 private:
  bool is_needed(const std::string& kind) const;

  std::vector<Ceiling> known_;
  DeviceInfo device_;
  DType type_ = DType::f32;
  std::vector<std::string> needed_;  ///< kinds
  bool tried_ = false;               // what is still missing can't be measured
};

}  // namespace greta::tuner
