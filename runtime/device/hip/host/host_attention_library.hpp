#pragma once

#include "runtime/device/hip/attention_library.hpp"

namespace greta::device::hip::host {

/// Returns hip-host's own library of attention, in the place of a vendor's. It ranks two
/// algorithms, which sum over the keys in two orders, and needs a workspace of a double for each
/// key. Like cuDNN, it computes sequences of any lengths, masks, windows, sinks, limits of scores
/// and log-sum-exps, with heads of at most 256 elements.
Result<std::shared_ptr<const AttentionLibrary>> open_attention_library();

}  // namespace greta::device::hip::host
