#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// Scaled dot-product attention: prefill and decode.
KernelTemplate make_attention();

}  // namespace greta::kernels
