#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/launch/operands.hpp"
#include "kernels/launch/prepared_plan.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"

namespace greta::tuner {

/// What the checks of a problem need besides the device.
struct HostData {
  std::vector<HostTensor> inputs;
  std::unique_ptr<Reference> reference;
};

/// Computes the inputs drawn from `seed`, and the reference.
HostData host_data(const Operation& operation, const Problem& problem, const InputSeed& seed,
                   InputStyle style);

/// Another content than nan_pattern: small positive numbers in all types of floating-point numbers.
inline constexpr std::uint32_t finite_pattern = 0x3C013C01;

/// What outputs and workspace contain before a launch.
struct BeforeLaunch {
  std::uint32_t outputs = nan_pattern;
  std::uint32_t workspace = nan_pattern;
  bool keeps_workspace = false;  ///< the workspace has what the last launch left
};

/// Events that are recorded directly before and after a launch; null: none.
struct AroundLaunch {
  Event* before = nullptr;
  Event* after = nullptr;
};

/// The operands of a problem on a device, filled with inputs, and the reference. Candidates are
/// checked on it one after another.
class Workload {
 public:
  /// The operation must outlive the workload.
  static Result<Workload> create(Device& device, const Operation& operation, const Problem& problem,
                                 Bounds bounds = Bounds::guarded);
  /// The same with finite numbers around all operands (GuardValues), for kernels that read there.
  static Result<Workload> create_with_finite_guards(Device& device, const Operation& operation,
                                                    const Problem& problem);

  const Problem& problem() const { return problem_; }
  const Operands& operands() const { return operands_; }
  /// Returns whether the inputs were drawn from this seed and style.
  bool has_inputs(const InputSeed& seed, InputStyle style) const;
  /// Draws the inputs. The reference is computed for the first check.
  Result<void> set_inputs(Device& device, const InputSeed& seed, InputStyle style);
  /// Uses the problem's host_data() of this seed and style.
  Result<void> set_inputs(Device& device, const InputSeed& seed, InputStyle style, HostData data);

  /// Runs a candidate once with poisoned outputs and workspace, and checks all bytes written,
  /// inside and outside the operands. A wrong result is a `correctness` failure.
  Result<void> check(Device& device, Stream& stream, const PreparedPlan& candidate, double run_s,
                     Verdict& verdict, const AroundLaunch& around = {});
  /// Records one run of a candidate on the present operands: outputs and workspace are poisoned,
  /// and operands that are read and written are left as they are.
  Result<void> record(Stream& stream, const PreparedPlan& candidate, const BeforeLaunch& before,
                      const AroundLaunch& around);
  /// Runs a candidate once and downloads its outputs, unchecked. Reuses the memory of `outputs`.
  Result<void> outputs_of(Device& device, Stream& stream, const PreparedPlan& candidate,
                          double run_s, const BeforeLaunch& before,
                          std::vector<HostTensor>& outputs);

 private:
  static Result<Workload> create(Device& device, const Operation& operation, const Problem& problem,
                                 const std::vector<TensorSpec>& specs, Bounds bounds);
  Result<void> upload_inputs(Device& device, const InputSeed& seed, InputStyle style);
  /// Throws Error.
  void compute_reference(Device& device);
  /// Finds elements of the last run's outputs that were not written, or were and must not be. If
  /// some have the bits from before the launch, runs the candidate again after others.
  Result<void> check_written(Device& device, Stream& stream, const PreparedPlan& candidate,
                             double run_s, Verdict& verdict);
  Result<void> run(Device& device, Stream& stream, const PreparedPlan& candidate, double run_s,
                   const BeforeLaunch& before = {}, const AroundLaunch& around = {});

  const Operation* operation_ = nullptr;
  Problem problem_;
  InputSeed seed_;
  InputStyle style_ = InputStyle::plain;
  bool filled_ = false;
  Operands operands_;
  std::vector<HostTensor> restored_;      // data of input_output tensors, by position; else empty
  std::vector<HostTensor> outputs_;       // outputs of the last candidate
  std::vector<HostTensor> inputs_;        // kept until the reference is computed
  std::unique_ptr<Reference> reference_;  // created for the first check; timing needs none
};

}  // namespace greta::tuner
