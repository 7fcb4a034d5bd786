#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Runs one configuration of attention on these inputs. Empty, with failed expectations, if it does
/// not run.
std::vector<HostTensor> run_attention(Device& device, const Problem& problem, const Config& config,
                                      const std::vector<HostTensor>& inputs);

/// Sets elements after the valid keys of the first sequences to NaN: they must have no effect.
void spoil_invalid_keys(const Problem& problem, const std::vector<std::int64_t>& lengths,
                        std::vector<HostTensor>& inputs);

/// Expects that a configuration's results are within the bound. `lengths`: valid keys of the first
/// sequences; what lies behind them is NaN and must have no effect.
void expect_right_attention(Device& device, const Problem& problem, const Config& config,
                            std::vector<std::int64_t> lengths = {}, std::uint64_t seed = 1);

}  // namespace greta::test
