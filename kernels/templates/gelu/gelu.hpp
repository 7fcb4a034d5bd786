#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta {

/// x times the share of a normal distribution below x.
const KernelTemplate& gelu_template();

}  // namespace greta
