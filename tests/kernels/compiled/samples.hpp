#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/catalog.hpp"

namespace greta::test {

using Visit = std::function<void(const Operation&, const Problem&, const Config&)>;

/// Returns whether one of the operation's sizes has the variant on a device.
bool has_variant(const Operation& entry, const std::string& variant, const DeviceInfo& device);

/// A subset of the catalog's sizes: of every `step` sizes the one at `first`, each with one type,
/// or with every type if `all` is set. `seed` is that of their attributes.
struct Sizes {
  bool all = false;
  std::size_t first = 0, step = 1;
  std::uint64_t seed = 7;
};

/// Visits the default of every operation for these sizes. Types alternate, with a different start
/// on each architecture.
void for_each_default(const DeviceInfo& device, const Sizes& sizes, const Visit& visit);

/// Visits `each` random configurations of every variant that an operation has on a device, each for
/// a random problem. Fails the test if a variant has fewer.
void for_each_sample(const DeviceInfo& device, int each, const Visit& visit);

/// Up to `each` random configurations of every variant that a constraint of this name rejects and
/// no other does, one step of one parameter from a valid one.
void for_each_rejected(const DeviceInfo& device, const std::string& constraint, int each,
                       const Visit& visit);

}  // namespace greta::test
