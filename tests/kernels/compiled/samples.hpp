#pragma once

#include <functional>
#include <string>

#include "tests/catalog.hpp"

namespace greta::test {

using Visit = std::function<void(const Operation&, const Problem&, const Config&)>;

/// Whether one of the operation's sizes has the variant on a device.
bool has_variant(const Operation& entry, const std::string& variant, const DeviceInfo& device);

/// Which of the catalog's sizes: of each `step` of them the one at `first`; each with one type, or
/// with `all`, with every type.
struct Sizes {
  bool all = false;
  std::size_t first = 0, step = 1;
};

/// The default of every operation for these sizes. Types take turns that begin at another one on
/// each architecture.
void for_each_default(const DeviceInfo& device, const Sizes& sizes, const Visit& visit);

/// `each` random configurations of every variant that an operation has on a device, each for a
/// random problem. Fails the test where a variant has fewer.
void for_each_sample(const DeviceInfo& device, int each, const Visit& visit);

/// Up to `each` random configurations of every variant that a constraint of this name rejects and
/// no other does, one step of one parameter from a valid one.
void for_each_rejected(const DeviceInfo& device, const std::string& constraint, int each,
                       const Visit& visit);

}  // namespace greta::test
