#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/launch/operands.hpp"
#include "kernels/launch/prepared_plan.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"

namespace greta::tuner {

/// A problem's operands on a device with inputs in them, and the reference: what candidates are
/// checked on, one after another.
class Workload {
 public:
  /// The operation must outlive it.
  static Result<Workload> create(Device& device, const Operation& operation,
                                 const Problem& problem);

  const Problem& problem() const { return problem_; }
  const Operands& operands() const { return operands_; }
  /// Whether its inputs are those of this seed and style.
  bool has_inputs(std::uint64_t seed, InputStyle style) const;
  Result<void> set_inputs(Device& device, std::uint64_t seed, InputStyle style);

  /// Runs a candidate once, with outputs and workspace poisoned, and judges what it wrote, inside
  /// of the operands and outside. What is wrong is a `correctness` failure.
  Result<void> check(Device& device, Stream& stream, const PreparedPlan& candidate, double run_s,
                     Verdict& verdict);

 private:
  Result<void> run(Device& device, Stream& stream, const PreparedPlan& candidate, double run_s);

  const Operation* operation_ = nullptr;
  Problem problem_;
  std::uint64_t seed_ = 0;
  InputStyle style_ = InputStyle::plain;
  bool filled_ = false;
  Operands operands_;
  std::vector<HostTensor> restored_;  // input_output tensors' data, by position; empty otherwise
  std::vector<HostTensor> outputs_;   // of the last candidate
  std::vector<HostTensor> inputs_;    // for the reference, until it is made
  std::unique_ptr<Reference> reference_;  // made for the first check: rounds need none
};

}  // namespace greta::tuner
