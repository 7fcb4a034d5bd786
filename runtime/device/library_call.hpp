#pragma once

#include <string>
#include <variant>

#include "runtime/device/attention_call.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/layers.hpp"
#include "runtime/device/matrix_product.hpp"

namespace greta::device {

/// What a vendor's library computes in place of a kernel.
using LibraryCall = std::variant<MatrixProduct, AttentionCall>;

/// Returns all fields as text, for content keys and messages.
std::string text_of(const LibraryCall& call);

/// Returns the name and version of the device's library for the call; empty if it is not open.
const std::string& library_of(const LibraryCall& call, const DeviceInfo& device);

}  // namespace greta::device
