#include "runtime/pipeline/lookup/lookup.hpp"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "kernels/catalog.hpp"
#include "kernels/validity.hpp"
#include "runtime/pipeline/lookup/answer_table.hpp"
#include "runtime/pipeline/lookup/bucket.hpp"
#include "runtime/pipeline/lookup/expected_regret.hpp"
#include "runtime/pipeline/lookup/fingerprint.hpp"
#include "runtime/pipeline/lookup/known_winners.hpp"

namespace greta::runtime {
namespace {

/// The device without what failed its health checks there.
DeviceInfo usable(const DeviceInfo& device, const KnownWinners& known) {
  const Avoided parts = avoided(known.unsafe(device));
  if (!parts.device) return without(device, parts);
  throw Error(Failure{Status::unavailable,
                      fmt::format("{}, {}: failed its health checks with {} (greta-bench doctor)",
                                  device.id(), device.name, device.driver),
                      {}});
}

}  // namespace

struct Lookup::Impl {
  DeviceInfo device;
  mutable AnswerTable answers;
  mutable std::mutex mutex;  // of all below, and of additions to the table
  mutable KnownWinners known;
  mutable ExpectedRegret expected;

  Impl(const DeviceInfo& device_as_it_is, KnownWinners known_winners, const LookupOptions& options)
      : device(options.allow_unsafe ? device_as_it_is : usable(device_as_it_is, known_winners)),
        known(std::move(known_winners)) {}

  const Answer& compute(const Problem& problem, const Fingerprint& fingerprint) const {
    const std::lock_guard lock(mutex);
    // Another thread may have been faster.
    if (const auto* answer = answers.find(fingerprint)) return *answer;
    return answers.insert(fingerprint, decide(problem));
  }

  /// The representative's, so that all lengths of a bucket share it.
  Config default_of(const KernelTemplate& kernel, const Problem& problem,
                    const Problem& representative) const {
    Config config = kernel.default_config(representative, device);
    return is_valid(problem, device, config) ? config : kernel.default_config(problem, device);
  }

  /// What is known of the problem. Where its rows are not packed, also what is known of packed
  /// ones: this device's first, then those of the same shape, then those with these strides.
  std::optional<KnownWinners::Found> known_of(const KernelTemplate& kernel, const Problem& problem,
                                              const Problem& representative) const {
    auto found = known.find({problem, representative}, device);
    const Problem packed = of_packed_rows(kernel, problem);
    if (packed == problem) return found;
    const Problem of_packed = bucket(packed);
    auto other = known.find({problem, representative}, {packed, of_packed}, device);
    const auto rank = [](const KnownWinners::Found& one) {
      return std::pair(one.origin == LookupOrigin::same_architecture, one.other_shape);
    };
    return !found || (other && rank(*other) < rank(*found)) ? other : found;
  }

  Answer decide(const Problem& problem) const {
    const auto* kernel = find_template(problem.op);
    if (kernel == nullptr) throw Error(fmt::format("there is no operation {}", problem.op));
    check_problem(*kernel, problem).value();
    Problem representative = bucket(problem);
    if (!check_problem(*kernel, representative)) representative = problem;
    Answer answer;
    auto found = known_of(*kernel, problem, representative);
    if (found) {
      answer.config = std::move(found->config);
      answer.origin = found->origin;
      answer.speedup = {found->winner.winner.speedup, found->winner.winner.speedup_low,
                        found->winner.winner.speedup_high};
      answer.problem = found->winner.problem.key();
      answer.device = found->winner.device.name;
      answer.shipped = found->shipped;
    } else {
      answer.config = default_of(*kernel, problem, representative);
    }
    answer.expected_regret = expected.of(known, problem, answer.origin);
    return answer;
  }
};

Lookup::Lookup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lookup::Lookup(Lookup&&) noexcept = default;
Lookup& Lookup::operator=(Lookup&&) noexcept = default;
Lookup::~Lookup() = default;

Lookup Lookup::open(const DeviceInfo& device, const LookupFiles& files,
                    const LookupOptions& options) {
  return Lookup(std::make_unique<Impl>(device, KnownWinners(device, files, options), options));
}

const Answer& Lookup::find(const Problem& problem) const {
  const Fingerprint fingerprint = fingerprint_of(problem);
  if (const auto* answer = impl_->answers.find(fingerprint)) return *answer;
  return impl_->compute(problem, fingerprint);
}

const DeviceInfo& Lookup::device() const {
  return impl_->device;
}

std::vector<std::string> Lookup::unreadable() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->known.unreadable();
}

}  // namespace greta::runtime
