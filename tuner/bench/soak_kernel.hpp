#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"
#include "tuner/bench/same_bits.hpp"
#include "tuner/bench/soak.hpp"
#include "tuner/evaluate/workload.hpp"

namespace greta::tuner {

/// A kernel that runs again and again on the same inputs, and of which every result is checked: its
/// bits are those of the first result, which was checked against the reference. If its description
/// declares sums without a fixed order (Variant::unordered), every result is checked against the
/// reference.
class SoakKernel {
 public:
  struct Options {
    std::uint64_t seed = 0;
    double timeout_s = 30;  ///< deadline of one launch
  };

  /// Runs the kernel once and checks the result. The device and the operation must outlive this
  /// object. `info` describes the device without the features to avoid.
  static Result<std::unique_ptr<SoakKernel>> create(Device& device, const DeviceInfo& info,
                                                    const Operation& operation,
                                                    const Problem& problem, const Config& config,
                                                    const Options& options);

  /// Runs the kernel for about `seconds`, at least once. Sets launches, wrong and times. Fails like
  /// the device's calls; the turn then has what was done before.
  Result<void> run(double seconds, const std::atomic<bool>& stop, SoakTurn& turn);
  /// Runs the kernel once more and checks it against the reference, with the guard zones of its
  /// operands, which comparisons of bits leave out. Sets launches and wrong.
  Result<void> check_once(SoakTurn& turn);
  bool is_unordered() const { return unordered_; }

 private:
  SoakKernel(Device& device, Workload load, PreparedPlan plan, const Options& options)
      : device_(device), load_(std::move(load)), plan_(std::move(plan)), options_(options) {}
  Result<void> prepare();
  Result<void> run_compared(SoakTurn& turn, std::vector<double>& us);
  Result<void> run_checked(SoakTurn& turn, std::vector<double>& us);
  Result<void> record(std::uint32_t slot);
  Result<void> read_times(std::uint32_t count, std::vector<double>& us) const;

  Device& device_;
  Workload load_;
  PreparedPlan plan_;
  Options options_;
  bool unordered_ = false;
  std::unique_ptr<Stream> stream_;
  std::optional<SameBits> same_;
  std::vector<std::unique_ptr<Event>> events_;  // two for each launch of a submission
  std::uint32_t launches_ = 1;                  // in the next submission
};

/// Returns the resident memory of this process in bytes; 0 if the system does not say.
double resident_bytes();

}  // namespace greta::tuner
