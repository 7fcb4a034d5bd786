#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/model/tensor.hpp"

namespace greta::kernels {

/// Outcome of checking one result against an independent FP64 reference.
struct Verdict {
  bool passed = false;
  double error = 0;    ///< |result - reference| of the element closest to (or past) its bound
  double bound = 0;    ///< what that element was held to
  std::string method;  ///< "full", or "16 rows in full, Freivalds over all columns"
  std::string detail;  ///< what broke, where; empty when passed

  /// error / bound; at most 1 when passed.
  double ratio() const { return bound > 0 ? error / bound : (error > 0 ? 1e300 : 0); }
};

/// The verdict on a result of two tensors: the one that failed, or came closer to its bound.
const Verdict& worse(const Verdict& a, const Verdict& b);

/// An exact value and how far a correct kernel's result may lie from it.
struct Expected {
  double value = 0;
  double bound = 0;
};

/// The FP64 reference of one problem with given inputs. Computed once, checks many results.
/// Independent of every kernel: it shares no code with the templates.
class Reference {
 public:
  virtual ~Reference() = default;
  /// `outputs`: the tensors whose role is not input, in order. NaN, Inf and unwritten elements
  /// fail. Thread-safe.
  virtual Verdict check(const std::vector<HostTensor>& outputs) const = 0;
  /// Every element of each of these outputs, in order; nothing where the problem is not
  /// Operation::fully_checked.
  virtual std::optional<std::vector<std::vector<Expected>>> expected() const = 0;
};

}  // namespace greta::kernels
