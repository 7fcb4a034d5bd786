#pragma once

#include <optional>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns the configuration to run where nothing was measured: of the variants' valid defaults and
/// candidates the one that the static prior predicts to be the fastest, changed by one parameter at
/// a time as long as that is predicted to gain, and only if all changes together are predicted to
/// gain 10 % and more. Only a few changes are made, because predictions far from what the
/// templates' authors chose are less reliable. Nothing where the first default is measured to cost
/// less (Operation::untuned, Variant::default_stands), and for CPUs, on which this was not
/// measured.
std::optional<Config> predicted_config(const Operation& operation, const Problem& problem,
                                       const DeviceInfo& device);

/// Returns a configuration among those of one variant: of its valid defaults and candidates the one
/// that the static prior predicts to be the fastest, or the first where it predicts none; without
/// any, one of the variant's space, chosen likewise. `variant` may have fewer values of parameters
/// than the operation's. Nothing if it has no valid configuration. For all operations and devices.
std::optional<Config> predicted_of_variant(const Operation& operation, const Alternative& variant,
                                           const Problem& problem, const DeviceInfo& device);

}  // namespace greta::kernels
