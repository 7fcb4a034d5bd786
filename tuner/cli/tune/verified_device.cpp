#include "tuner/cli/tune/verified_device.hpp"

#include <algorithm>
#include <iterator>

#include "kernels/model/first_valid.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {
namespace {

DeviceInfo opened(const DeviceInfo& probed, const OpenOptions& options) {
  const auto device = open_device(probed.id(), options);
  if (!device) throw CommandError(exit_failed, device.failure().message);
  return (*device)->info();
}

/// Returns whether a device has what a variant needs.
bool supports(const DeviceInfo& device, const Operation& operation, const Variant& variant) {
  return std::any_of(operation.dtypes.begin(), operation.dtypes.end(), [&](const DTypes& types) {
    const auto shape = operation.shape(typical_problem(operation, types));
    return is_possible(variant.space(shape, device));
  });
}

}  // namespace

bool VerifiedDevice::emulates(std::string_view variant) const {
  return std::find(emulated.begin(), emulated.end(), variant) != emulated.end();
}

VerifiedDevice device_to_verify(const Operation& operation, const DeviceInfo& probed, bool vendor) {
  OpenOptions open;
  open.vendor = vendor;
  VerifiedDevice device{vendor ? opened(probed, open) : probed, {}, {}};
  const bool may_emulate = probed.backend == Api::vulkan && probed.is_cpu();
  if (!may_emulate || !probed.matrix_operations.empty()) return device;
  open.emulated_matrices = true;
  device.emulating = opened(probed, open);
  for (const Variant& variant : operation.variants) {
    if (supports(*device.emulating, operation, variant) &&
        !supports(device.info, operation, variant)) {
      device.emulated.push_back(variant.name);
    }
  }
  return device;
}

std::vector<Candidate> random_problems(const Operation& operation, const ChoiceOptions& options,
                                       const VerifiedDevice& device, const std::string& count,
                                       std::uint64_t seed) {
  auto chosen = candidates_of_random_problems(operation, options, device.running(options.variant),
                                              "--problems", count, seed);
  if (!options.variant.empty()) return chosen;
  constexpr std::size_t share = 20;  // their kernels compile slowly
  const std::size_t some = (chosen.size() + share - 1) / share;
  for (const std::string& variant : device.emulated) {
    auto more = random_candidates(operation, *device.emulating, variant, some, seed);
    std::move(more.begin(), more.end(), std::back_inserter(chosen));
  }
  return chosen;
}

}  // namespace greta::tuner::cli
