#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner {

/// What a hypothesis says that each output contains: all elements, as of packed rows.
using Prediction = std::vector<std::vector<Expected>>;

/// Returns whether two values are the same within a bound; NaN equals NaN.
bool agrees(double a, double b, double within);

/// One output of a failed case: what was computed and what is expected.
struct ExaminedOutput {
  TensorSpec spec;             ///< with packed rows
  std::vector<Expected> want;  ///< of each element
  std::vector<double> got;     ///< in the first run
  std::vector<char> wrong;     ///< whether an element of the first run is outside its bound
  std::vector<char> varies;    ///< whether an element differs between equal runs
  /// The number of different results of the equal runs, if all elements that vary do so between the
  /// same runs; 0: they do not, or nothing varies.
  std::size_t kinds_of_runs = 0;
  std::vector<char> ever_right;  ///< whether it is within its bound in one of the equal runs
  std::vector<char> unwritten;   ///< whether it has the bits from before the launch, in every run
  /// Whether it depends on what outputs, or the workspace, contained before, but isn't unwritten.
  std::vector<char> reads_outputs, reads_workspace;
  /// Whether it has another value if local variables begin with a pattern than if they begin with
  /// 0; and how many of these elements are within their bounds with 0.
  std::vector<char> reads_registers;
  std::size_t right_with_zeros = 0;
  /// Whether it depends on what lies around the operands, and what it is with finite numbers there.
  std::vector<char> reads_outside;
  std::vector<double> got_with_finite_guards;
  /// Whether it is within its bound if the workspace contains the results of another run.
  std::vector<char> right_after_another;

  std::size_t count(const std::vector<char>& marked) const;
  /// Whether an element is wrong or differs between equal runs.
  bool fails() const { return count(wrong) + count(varies) > 0; }
};

/// A failed case as hypotheses examine it.
class Evidence {
 public:
  /// The operation must outlive it. Throws Error if the case lacks runs or expected elements.
  Evidence(const Operation& operation, const Problem& problem, const FailedCase& failed);

  const Operation& operation() const { return *operation_; }
  const Problem& problem() const { return problem_; }
  const FailedCase& failed() const { return *failed_; }
  /// The operands that kernels read, in order, with packed rows.
  const std::vector<HostTensor>& inputs() const { return inputs_; }
  const std::vector<ExaminedOutput>& outputs() const { return outputs_; }
  /// Returns what is expected with other inputs (with packed rows) or another problem; nothing if
  /// the operation computes no reference of these.
  std::optional<Prediction> recompute(const std::vector<HostTensor>& inputs) const {
    return recompute(problem_, inputs);
  }
  std::optional<Prediction> recompute(const Problem& problem,
                                      const std::vector<HostTensor>& inputs) const;
  /// Returns what is expected, which a hypothesis changes.
  Prediction expected() const;
  std::size_t wrong() const { return wrong_; }  ///< wrong elements of all outputs
  std::size_t equal_runs() const { return equal_runs_; }

 private:
  void examine(const TensorSpec& spec, const CaseBuffer& buffer, std::size_t at);
  /// Examines the runs under other conditions.
  void examine_others(ExaminedOutput& made, const HostTensor& first, std::size_t at) const;

  const Operation* operation_;
  Problem problem_;
  const FailedCase* failed_;
  std::vector<HostTensor> inputs_;
  std::vector<ExaminedOutput> outputs_;
  std::size_t wrong_ = 0;
  std::size_t equal_runs_ = 0;
};

}  // namespace greta::tuner
