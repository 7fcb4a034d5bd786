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

/// A problem of an operation on rows; `attributes` have no defaults among them.
Problem row_problem(const Operation& entry, std::int64_t rows, std::int64_t cols,
                    DTypes types = {DType::f32, DType::f32}, Attributes attributes = {});

/// A tensor whose elements a function gives, rounded to its type.
HostTensor tensor_of(const TensorSpec& spec,
                     const std::function<double(std::int64_t row, std::int64_t col)>& element);

/// Every input of a problem; where `elements` has a tensor's name, of that function, else random.
using Elements = std::function<double(std::int64_t row, std::int64_t col)>;
std::vector<HostTensor> inputs_of(const Operation& entry, const Problem& problem,
                                  const std::vector<std::pair<std::string, Elements>>& elements);

/// Of usable_devices(), those that differ most for kernels on rows: of hip-host's the one with
/// waves of 64, since a kernel takes a C++ compiler's second there.
std::vector<std::string> unlike_devices();

/// The default's configuration, and one of each variant that the space has, drawn by the seed.
std::vector<Config> one_of_each(const Operation& entry, const Problem& problem,
                                const DeviceInfo& device, std::uint64_t seed);

/// Runs one_of_each() on these inputs and expects what the reference expects.
void expect_right_for(const Operation& entry, const Problem& problem,
                      const std::vector<HostTensor>& inputs, Device& device,
                      std::uint64_t seed = 1);

}  // namespace greta::test
