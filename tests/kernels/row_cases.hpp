#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"

namespace greta::test {

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Returns a problem of an operation on rows. `attributes` contain no defaults.
Problem row_problem(const Operation& entry, std::int64_t rows, std::int64_t cols,
                    DTypes types = {DType::f32, DType::f32}, Attributes attributes = {});

/// Returns a tensor whose elements a function gives, rounded to its type.
HostTensor tensor_of(const TensorSpec& spec,
                     const std::function<double(std::int64_t row, std::int64_t col)>& element);

/// Functions for the elements of inputs, by the tensor's name. Inputs without one are random.
using Elements = std::function<double(std::int64_t row, std::int64_t col)>;
std::vector<HostTensor> inputs_of(const Operation& entry, const Problem& problem,
                                  const std::vector<std::pair<std::string, Elements>>& elements);

/// Returns those of usable_devices() that differ most for kernels on rows. Of hip-host's, on which
/// compiling a kernel takes about a second, this is the one with waves of 64.
std::vector<std::string> unlike_devices();

/// Returns the default configuration, and one of each variant of the space, drawn from the seed.
std::vector<Config> one_of_each(const Operation& entry, const Problem& problem,
                                const DeviceInfo& device, std::uint64_t seed);

/// Runs one_of_each() on these inputs and expects correct results.
void expect_right_for(const Operation& entry, const Problem& problem,
                      const std::vector<HostTensor>& inputs, Device& device,
                      std::uint64_t seed = 1);

}  // namespace greta::test
