#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Scaled dot-product attention: prefill and decode.
Operation make_attention();

}  // namespace greta::kernels
