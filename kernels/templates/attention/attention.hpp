#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta {

/// Scaled dot-product attention: prefill and decode.
const KernelTemplate& attention_template();

}  // namespace greta
