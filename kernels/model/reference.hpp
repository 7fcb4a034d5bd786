#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/tensor.hpp"

namespace greta::kernels {

/// The outcome of checking one result against an independent FP64 reference.
struct Verdict {
  bool passed = false;
  double error = 0;    ///< |result - reference| of the element with the largest ratio to its bound
  double bound = 0;    ///< the error bound of that element
  std::string method;  ///< e.g. "full", or "16 rows in full, Freivalds over all columns"
  std::string detail;  ///< what failed and where; empty if passed

  /// Returns error / bound, which is at most 1 if passed.
  double ratio() const { return bound > 0 ? error / bound : (error > 0 ? 1e300 : 0); }
};

/// Returns the verdict that failed or, if neither did, came closer to its bound.
const Verdict& worse(const Verdict& a, const Verdict& b);

/// A reference value and the error bound of a correct kernel's result.
struct Expected {
  double value = 0;
  double bound = 0;
};

/// An element of an output; `index` counts the elements of packed rows.
struct ExpectedElement {
  std::uint64_t index = 0;
  Expected expected;
};

/// Returns up to `most` indices below `size` in increasing order: 0, the last, and a pseudo-random
/// one of each of `most` equal parts.
std::vector<std::size_t> spread_indices(std::size_t size, std::size_t most);

/// The FP64 reference of one problem with given inputs. It is computed once and checks any number
/// of results. It shares no code with the kernel templates.
class Reference {
 public:
  virtual ~Reference() = default;
  /// Checks the tensors whose role is not input, given in order. NaN, Inf and unwritten elements
  /// fail. Thread-safe.
  virtual Verdict check(const std::vector<HostTensor>& outputs) const = 0;
  /// Returns every element of each of these outputs, in order, or std::nullopt if the problem is
  /// not Operation::fully_checked.
  virtual std::optional<std::vector<std::vector<Expected>>> expected() const = 0;
  /// Returns whether a correct kernel writes this row of this output. It leaves the others as they
  /// were.
  virtual bool writes(std::string_view /*output*/, std::int64_t /*row*/) const { return true; }
  /// Returns up to `most` elements of each of these outputs, in order of the index. They come from
  /// all of the output, or from the elements that the reference computes.
  virtual std::vector<std::vector<ExpectedElement>> sample(std::size_t most) const;
};

}  // namespace greta::kernels
